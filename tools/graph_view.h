// The graph as the tools look at it: loaded once, with its findings, inferred shapes and readers, and questions about it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/loader.h"
#include "thalweg/graph/shape_inference.h"

namespace thalweg::tools {

struct GraphView {
  std::string path;
  int64_t file_bytes = 0;
  LoadResult loaded;          // findings include those of shape inference
  InferredShapes shapes;
  std::optional<Consumers> consumers;  // absent, as shapes are, if the graph has errors of structure

  const Graph& graph() const { return loaded.graph; }
};

// Loads and infers shapes; `shapes` fixes those of named tensors ("NAME", PartialShape), as --shape does. A status only if
// the file cannot be read as a graph at all, or a fixed name does not exist.
using FixedShapes = std::vector<std::pair<std::string, PartialShape>>;
absl::StatusOr<std::unique_ptr<GraphView>> OpenGraph(const std::string& path, const FixedShapes& shapes = {});

// "--shape NAME=8x224x224x3", each; InvalidArgument for malformed ones.
absl::StatusOr<FixedShapes> ParseFixedShapes(const std::vector<std::string>& flags);

// Kinds of nodes by what they do at the borders of a graph.
bool IsPlaceholder(const Node& node);            // must be fed
// "Placeholder", "reader", "queue", "dataset", "random": why the node is an input; nullptr if it is none.
const char* InputKind(const Node& node);
// True for ops of saving, restoring, initialising and summarising, which no inference needs.
bool IsHousekeeping(const Node& node);

// What a step needs: all nodes from which `roots` can be reached, going no further back than `stops` (the fed tensors).
absl::flat_hash_set<NodeId> Ancestors(const Graph& graph, const std::vector<NodeId>& roots, const absl::flat_hash_set<Endpoint>& stops);

// The placeholders that a step with these feeds, fetches and targets must be fed but is not, in file order.
absl::StatusOr<std::vector<NodeId>> UnfedPlaceholders(const Graph& graph, const std::vector<std::string>& feeds,
                                                      const std::vector<std::string>& fetches, const std::vector<std::string>& targets);

struct OutputCandidate {
  NodeId node = kNoNode;
  bool likely = false;
  std::string reason;
};
// Nodes that nothing reads, the likely results first: those that depend on an input and are no housekeeping.
std::vector<OutputCandidate> RankOutputs(const GraphView& view);

}  // namespace thalweg::tools
