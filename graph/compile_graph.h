// From a loaded graph and the feeds, fetches and targets of a step to a placed, partitioned graph ready to become a
// plan. The order of the stages is in compile_graph.cc, on one screen.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/lowering/function_body.h"
#include "thalweg/graph/partition/partition.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/graph/prune.h"
#include "thalweg/graph/shape_inference.h"

namespace thalweg {

// Evaluates one node with constant inputs (constant folding). Implemented in runtime/ over the CPU kernels.
class ConstantEvaluator {
 public:
  virtual ~ConstantEvaluator() = default;
  // All outputs, or an error (the node is then left for run time). `max_bytes` bounds each output.
  virtual absl::StatusOr<std::vector<TensorLiteralPtr>> Evaluate(const Graph& graph, const Node& node,
                                                                 absl::Span<const TensorLiteralPtr> inputs,
                                                                 int64_t max_bytes) const = 0;
};

struct CompileRequest {
  std::vector<Endpoint> feeds;
  std::vector<Endpoint> fetches;
  std::vector<NodeId> targets;
  std::vector<Connection> connections;
  std::vector<PlacementDevice> devices;  // index 0 is the client device (a CPU)
  const KernelCatalog* kernels = nullptr;
  const ConstantEvaluator* evaluator = nullptr;  // null: no folding
  PlacementOptions placement;
  bool optimize = true;
  absl::flat_hash_set<std::string> disabled_passes;
  int parallel_iterations = 0;  // of every loop; 0: as written
};

struct PassReport {
  std::string name;
  int64_t nanos = 0;
  int nodes_before = 0;
  int nodes_after = 0;
  std::string error;  // why the pass was left out; "" if it ran
};

struct CompiledGraph {
  Graph graph;            // only live nodes, ids in topological order; has _Arg, _Retval, _Send, _Recv nodes
  InferredShapes shapes;  // of `graph`
  ControlFlow control_flow;  // of `graph`
  Placement placement;    // by node id of `graph`
  std::vector<Transfer> transfers;
  std::vector<PassReport> passes;
  absl::flat_hash_map<NodeId, absl::Status> faults;  // of nodes that can only fail, if the step comes to run them
};

// A function's body as a step of its own: what a `_Call` executes. Feeds, fetches and targets of the request are not used;
// `_Arg` and `_Retval` carry the indices of arguments and results. `loaded` is the session's graph.
absl::StatusOr<CompiledGraph> CompileFunction(const FunctionBody& body, Effects effects, const Graph& loaded, const CompileRequest& request);

// `_Arg` nodes carry attrs index (position in feeds) and T; `_Retval` nodes carry index (position in fetches) and T.
absl::StatusOr<CompiledGraph> CompileGraph(const Graph& loaded, const CompileRequest& request);

}  // namespace thalweg
