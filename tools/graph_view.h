// The graph as the tools look at it: loaded once, with its findings, inferred shapes and readers, and questions about
// it.
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
#include "thalweg/graph/summary.h"
#include "thalweg/tools/command_line.h"

namespace thalweg::tools {

struct GraphView {
  std::string path;
  int64_t file_bytes = 0;
  LoadResult loaded;  // findings include those of shape inference
  InferredShapes shapes;
  // Only of a graph without errors, as are shapes.
  std::optional<Consumers> consumers;
  std::optional<GraphSummary> summary;

  const Graph& graph() const { return loaded.graph; }
};

// Loads and infers shapes; `shapes` fixes those of named tensors ("NAME", PartialShape), as --shape does. A status only
// if the file cannot be read as a graph at all, or a fixed name does not exist.
using FixedShapes = std::vector<std::pair<std::string, PartialShape>>;
absl::StatusOr<std::unique_ptr<GraphView>> OpenGraph(const std::string& path, const FixedShapes& shapes = {});

// "NAME=8x224x224x3", each; InvalidArgument for malformed ones.
absl::StatusOr<FixedShapes> ParseFixedShapes(const std::vector<std::string>& texts);
// Those of --shape.
absl::StatusOr<FixedShapes> ReadFixedShapes(const Arguments& arguments);

// What a step needs: all nodes from which `roots` can be reached, going no further back than `stops` (the fed tensors).
absl::flat_hash_set<NodeId> Ancestors(const Graph& graph, const std::vector<NodeId>& roots,
                                      const absl::flat_hash_set<Endpoint>& stops);

// The placeholders that a step with these feeds, fetches and targets must be fed but is not, in file order.
absl::StatusOr<std::vector<NodeId>> UnfedPlaceholders(const Graph& graph, const std::vector<std::string>& feeds,
                                                      const std::vector<std::string>& fetches,
                                                      const std::vector<std::string>& targets);

// What a step fetches if nobody says: the first of the likely outputs.
std::vector<std::string> LikelyFetches(const GraphSummary& summary, size_t limit = 16);

}  // namespace thalweg::tools
