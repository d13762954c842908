#include "thalweg/graph/passes/control_edges.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace thalweg {

absl::StatusOr<bool> DropRedundantControlEdges(Graph& graph, const PassContext& context) {
  bool changed = false;
  absl::flat_hash_set<NodeId> waited_for;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    Node& node = graph.mutable_node(id);
    if (node.removed || node.control_inputs().empty()) continue;
    waited_for.clear();
    // A Merge starts at its first live input, so its data inputs promise nothing (A24).
    if (!node.is("Merge") && !node.is("RefMerge") && !node.is("_XlaMerge")) {
      for (Endpoint input : node.data_inputs()) waited_for.insert(input.node);
    }
    const auto end = std::remove_if(node.inputs.begin() + node.num_data_inputs, node.inputs.end(),
                                    [&](Endpoint control) { return !waited_for.insert(control.node).second; });
    changed |= end != node.inputs.end();
    node.inputs.erase(end, node.inputs.end());
  }
  return changed;
}

}  // namespace thalweg
