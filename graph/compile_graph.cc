#include "thalweg/graph/compile_graph.h"

#include <utility>

#include "thalweg/graph/passes/pass_list.h"
#include "thalweg/graph/passes/pass_runner.h"
#include "thalweg/graph/prune.h"

namespace thalweg {
namespace {

// Drops removed nodes and renumbers everything that names nodes.
absl::Status Compact(const Graph& graph, CompiledGraph* out) {
  std::vector<NodeId> new_ids;
  THALWEG_ASSIGN_OR_RETURN(out->graph, graph.Compacted(&new_ids));
  std::vector<DecisionRecord> records(out->graph.num_nodes());
  for (NodeId old = 0; old < graph.num_nodes(); ++old) {
    if (new_ids[old] == kNoNode) continue;
    DecisionRecord& record = records[new_ids[old]];
    record = std::move(out->placement.records[old]);
    if (record.group != kNoNode) record.group = new_ids[record.group];
  }
  out->placement.records = std::move(records);
  for (Transfer& transfer : out->transfers) {
    transfer.source.node = new_ids[transfer.source.node];
    transfer.send = new_ids[transfer.send];
    transfer.recv = new_ids[transfer.recv];
    for (NodeId& consumer : transfer.consumers) consumer = new_ids[consumer];
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompiledGraph> CompileGraph(const Graph& loaded, const CompileRequest& request) {
  CompiledGraph out;
  // Keep what the step needs, with its feeds and fetches as nodes, and rewrite it.
  THALWEG_ASSIGN_OR_RETURN(PrunedGraph step, PruneAndOptimize(loaded, request, AllPasses(), &out.passes));
  Graph& graph = step.graph;
  // Decide on devices.
  THALWEG_ASSIGN_OR_RETURN(PlacementOptions placement, WithStatePlacement(loaded, request));
  THALWEG_ASSIGN_OR_RETURN(out.placement, PlaceGraph(graph, request.devices, *request.kernels, placement));
  // Cut the edges between devices.
  THALWEG_ASSIGN_OR_RETURN(PartitionResult cut, PartitionGraph(graph, out.placement, request.devices, *request.kernels));
  out.transfers = std::move(cut.transfers);
  // Number what is left in topological order.
  THALWEG_RETURN_IF_ERROR(Compact(graph, &out));
  out.shapes = InferShapes(out.graph, {}, nullptr);
  return out;
}

}  // namespace thalweg
