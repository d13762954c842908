#include "thalweg/graph/passes/identity.h"

#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

bool HandsInputOn(const Node& node) {
  static const auto& ops = *new absl::flat_hash_set<absl::string_view>{"Identity", "StopGradient", "PreventGradient",
                                                                       "Snapshot", "PlaceholderWithDefault"};
  return node.num_data_inputs == 1 && ops.contains(node.op);
}

}  // namespace

absl::StatusOr<bool> RemoveIdentities(Graph& graph, const PassContext& context) {
  THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  Bypass bypass(graph, context.preserve);
  for (NodeId id : order) {
    if (HandsInputOn(graph.node(id))) bypass.Offer(id, graph.node(id).inputs[0]);
  }
  return bypass.Apply();
}

}  // namespace thalweg
