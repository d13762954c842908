#include "thalweg/graph/partition/loop_nodes.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/internal_nodes.h"

namespace thalweg {
namespace {

// Uses of a loop node by nodes on other devices that must get a copy of their own, by device.
struct ForeignUses {
  std::map<int, std::vector<Consumers::Use>> by_device;
  bool has_other_uses = false;  // those that stay with the original
};

ForeignUses FindForeignUses(const Graph& graph, NodeId id, const Consumers& consumers) {
  const Node& node = graph.node(id);
  ForeignUses found;
  for (const Consumers::Use& use : consumers.of(id)) {
    const Node& reader = graph.node(use.node);
    const bool needs_copy = use.port != kControlPort && reader.device != node.device && !IsStepBoundary(reader) &&
                            (node.is("Enter") || reader.is("Merge"));
    if (needs_copy)
      found.by_device[reader.device].push_back(use);
    else
      found.has_other_uses = true;
  }
  return found;
}

}  // namespace

absl::Status RepeatLoopNodes(Graph& graph, absl::Span<const PlacementDevice> devices, const KernelCatalog& kernels,
                             DerivedPlacement& derived) {
  const Consumers consumers = graph.BuildConsumers();
  const int num_nodes = graph.num_nodes();
  for (NodeId id = 0; id < num_nodes; ++id) {
    if (graph.node(id).removed || !(graph.node(id).is("Enter") || graph.node(id).is("NextIteration"))) continue;
    ForeignUses foreign = FindForeignUses(graph, id, consumers);
    bool may_move = !foreign.has_other_uses;
    for (const auto& [device, uses] : foreign.by_device) {
      if (absl::Status status = kernels.CanRun(graph.node(id), devices[device].backend); !status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the loop node '", graph.node(id).name, "' must be on ", devices[device].name.ToShortString(),
                         " where '", graph.node(uses.front().node).name, "' reads it, but ", status.message()));
      }
      if (std::exchange(may_move, false)) {
        derived.Move(id, device, "B3", uses.front().node);
        continue;
      }
      Node copy = graph.node(id);
      const NodeId repeated = derived.AddNode(graph.node(id).name, std::move(copy), device, "B3", uses.front().node);
      for (const Consumers::Use& use : uses) graph.mutable_node(use.node).inputs[use.input] = {repeated, use.port};
    }
  }
  return absl::OkStatus();
}

}  // namespace thalweg
