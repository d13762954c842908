#include "thalweg/graph/partition/partition.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/partition/derived_placement.h"
#include "thalweg/graph/partition/loop_nodes.h"
#include "thalweg/graph/partition/memory_kinds.h"
#include "thalweg/graph/partition/reference_reads.h"
#include "thalweg/graph/partition/send_recv.h"

namespace thalweg {
namespace {

absl::Status SetDevices(Graph& graph, const Placement& placement, int num_devices) {
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    Node& node = graph.mutable_node(id);
    if (node.removed) continue;
    node.device = placement.records[id].device;
    if (node.device < 0 || node.device >= num_devices) {
      return absl::InternalError(absl::StrCat("node '", node.name, "' has no device [B1]"));
    }
  }
  return absl::OkStatus();
}

class EdgeCutter {
 public:
  EdgeCutter(Graph& graph, absl::Span<const PlacementDevice> devices, const KernelCatalog& kernels,
             SendRecvMaker& maker)
      : graph_(graph), devices_(devices), memory_(graph, devices, kernels), maker_(maker) {}

  absl::Status CutInputsOf(NodeId id) {
    const int num_inputs = static_cast<int>(graph_.node(id).inputs.size());
    for (int i = 0; i < num_inputs; ++i) {
      const Endpoint source = graph_.node(id).inputs[i];
      const bool crosses = graph_.node(source.node).device != graph_.node(id).device;
      if (source.is_control()) {
        if (crosses) THALWEG_RETURN_IF_ERROR(CutControl(id, i));
      } else if (crosses || !devices_[graph_.node(id).device].host_memory) {
        THALWEG_RETURN_IF_ERROR(CutData(id, i, crosses));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CutControl(NodeId id, int input) {
    const Endpoint source = graph_.node(id).inputs[input];
    THALWEG_ASSIGN_OR_RETURN(const NodeId recv,
                             maker_.RecvFor(source, /*source_on_host=*/true, id, /*destination_on_host=*/true));
    graph_.mutable_node(id).inputs[input] = {recv, kControlPort};
    return absl::OkStatus();
  }

  absl::Status CutData(NodeId id, int input, bool crosses) {
    const Endpoint source = graph_.node(id).inputs[input];
    const bool source_on_host = memory_.OutputOnHost(source.node, source.port);
    const bool wanted_on_host = memory_.InputOnHost(id, input);
    if (!crosses && source_on_host == wanted_on_host) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(const NodeId recv, maker_.RecvFor(source, source_on_host, id, wanted_on_host));
    graph_.mutable_node(id).inputs[input] = {recv, 0};
    return absl::OkStatus();
  }

  Graph& graph_;
  const absl::Span<const PlacementDevice> devices_;
  MemoryKinds memory_;
  SendRecvMaker& maker_;
};

}  // namespace

absl::StatusOr<PartitionResult> PartitionGraph(Graph& graph, Placement& placement,
                                               absl::Span<const PlacementDevice> devices,
                                               const KernelCatalog& kernels) {
  THALWEG_RETURN_IF_ERROR(SetDevices(graph, placement, static_cast<int>(devices.size())));
  if (devices.size() == 1 && devices[0].host_memory) return PartitionResult{};
  DerivedPlacement derived(graph, placement, static_cast<int>(devices.size()));
  THALWEG_RETURN_IF_ERROR(RepeatLoopNodes(graph, devices, kernels, derived));
  THALWEG_RETURN_IF_ERROR(ReadReferencesAtSource(graph, derived));
  SendRecvMaker maker(graph, placement, devices, derived);
  EdgeCutter cutter(graph, devices, kernels, maker);
  const int num_nodes = graph.num_nodes();  // transfers need no cutting themselves
  for (NodeId id = 0; id < num_nodes; ++id) {
    if (!graph.node(id).removed) THALWEG_RETURN_IF_ERROR(cutter.CutInputsOf(id));
  }
  return PartitionResult{maker.TakeTransfers()};
}

}  // namespace thalweg
