// run --dump RE=FOLDER: every value of the nodes that match, as .npy files.
//
// Only values that the step computes anyway are taken, so that a dump changes nothing about what runs. Left out, with a
// line saying so: nodes inside loops (a value per iteration), nodes that may not be reached (behind a Switch), and
// values without a plain form (resources, variants).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/graph.h"
#include "thalweg/runtime/session.h"

namespace thalweg::tools {

struct DumpRequest {
  std::string pattern;  // RE2, matches the whole node name
  std::string folder;
};
// "RE=FOLDER", split at the last '='. InvalidArgument otherwise.
absl::StatusOr<DumpRequest> ParseDump(const std::string& text);

struct DumpSelection {
  struct Item {
    std::string tensor;  // "node:port"
    std::string folder;
  };
  std::vector<Item> items;
  std::vector<std::string> skipped;  // what was left out and why, a line each
};
absl::StatusOr<DumpSelection> SelectDumps(const Graph& graph, const std::vector<DumpRequest>& requests,
                                          const Feeds& feeds, const std::vector<std::string>& fetches,
                                          const std::vector<std::string>& targets);

// Makes the folder unless it is there. A status if that is impossible, or something else has its name.
absl::Status MakeDumpFolder(const std::string& folder);
// Writes FOLDER/node.port.npy; '/' in the name becomes '.'.
absl::Status WriteDump(const DumpSelection::Item& item, const Tensor& tensor);

}  // namespace thalweg::tools
