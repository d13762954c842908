#include "thalweg/graph/passes/identity.h"

#include "thalweg/graph/control_flow.h"
#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

bool IsRemovable(const Node& node) {
  return (HandsInputOn(node) && !IsControlFlow(node)) ||
         (node.is("PlaceholderWithDefault") && node.num_data_inputs == 1);
}

}  // namespace

absl::StatusOr<bool> RemoveIdentities(Graph& graph, const PassContext& context) {
  THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
  Bypass bypass(graph, context.preserve);
  for (NodeId id : order) {
    if (IsRemovable(graph.node(id))) bypass.Offer(id, graph.node(id).inputs[0]);
  }
  return bypass.Apply();
}

}  // namespace thalweg
