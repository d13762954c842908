// Loading: from bytes to a Graph, all faults found at once.
//
// A file is read node by node, with neither the file nor a whole message in memory; large tensor contents stay where they
// were read, each node's in memory of its own.
// `.pb` and `.pbtxt` are told apart by content; other known kinds of file are named in the error ("this is a JPEG
// image").
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

struct LoadLimits {
  int64_t max_nodes = 10'000'000;
  int64_t max_inputs_per_node = 65536 * 4;
  int64_t max_name_bytes = 1 << 20;
  int max_nesting = 100;  // message nesting (attr values, functions, text)
  int64_t max_literal_bytes = int64_t{1} << 40;
};

// One thing wrong with (or remarkable about) a graph.
struct Finding {
  enum class Severity { kNote, kWarning, kError };
  Severity severity = Severity::kError;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;  // of errors
  std::string kind;  // "unknown op", "cycle", "missing input", ...: findings group by it
  std::string node;  // "" if it concerns the whole file
  std::string op;
  std::string message;       // what, where, with which values
  std::string advice;        // what to do; may be empty
  NodeId node_id = kNoNode;  // position in the file, for ordering
};

struct LoadOptions {
  const OpRegistry* schemas = nullptr;  // required
  LoadLimits limits;
  // Nodes are added to this graph (Session::Extend): names there may be referenced and may not be repeated.
  const Graph* base = nullptr;
};

struct LoadResult {
  Graph graph;                    // meaningful only if !has_errors()
  std::vector<Finding> findings;  // errors first, in file order; then warnings and notes
  bool has_errors() const;
  // OK, or the status of the first error in file order; its message lists all errors (shortened beyond 20).
  absl::Status status() const;
};

// A status only for what prevents reading at all: no such file (NotFound), not a graph, truncated (DataLoss,
// InvalidArgument). Everything wrong inside a readable graph is in the findings.
absl::StatusOr<LoadResult> LoadGraphFile(const std::string& path, const LoadOptions& options);
// `owner` keeps `bytes` alive; null makes the loader copy what it keeps. `label` names the source in messages.
absl::StatusOr<LoadResult> LoadGraphBytes(absl::string_view bytes, std::shared_ptr<const void> owner,
                                          const std::string& label, const LoadOptions& options);

}  // namespace thalweg
