// From -i flags to the tensors that a step is fed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/graph_view.h"
#include "thalweg/tools/input_spec.h"

namespace thalweg::tools {

// All -i flags, parsed. InvalidArgument for malformed ones.
absl::StatusOr<std::vector<InputSpec>> ParseInputFlags(const std::vector<std::string>& flags);

// Builds every input against what the session declares of it. A name that the graph does not have is passed on as it
// is: the session says so, with the nearest names.
absl::StatusOr<Feeds> BuildFeeds(const Session& session, const std::vector<InputSpec>& inputs);
// The arrays of an archive, keyed by tensor name.
absl::StatusOr<Feeds> FeedsFromArchive(const Session& session, const std::string& path);

// --fill: a value for every placeholder that the step needs and `feeds` lacks. `fixed` (--shape) decides unknown
// dimensions; with `open_dims_as_one` those left open become 1, otherwise they are an error. Appends to `feeds` and
// returns one line per value, for telling the user.
struct FillRequest {
  std::string value = "rand";  // "rand~SEED", "zeros", ...
  FixedShapes fixed;
  bool open_dims_as_one = false;
};
absl::StatusOr<std::vector<std::string>> FillPlaceholders(const GraphView& view, const FillRequest& request,
                                                          const std::vector<std::string>& fetches,
                                                          const std::vector<std::string>& targets, Feeds* feeds);

}  // namespace thalweg::tools
