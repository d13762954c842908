// Which arguments of placed nodes are in host memory (A84). On devices that have nothing else, all are.
#pragma once

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

class MemoryKinds {
 public:
  // All must outlive the table; nodes must not change once they have been asked about.
  MemoryKinds(const Graph& graph, absl::Span<const PlacementDevice> devices, const KernelCatalog& kernels)
      : graph_(graph), devices_(devices), kernels_(kernels) {}

  bool InputOnHost(NodeId node, int input) { return OnHost(node, input, /*is_input=*/true); }
  bool OutputOnHost(NodeId node, int output) { return OnHost(node, output, /*is_input=*/false); }

 private:
  struct Kinds {
    std::vector<bool> inputs;
    std::vector<bool> outputs;
  };

  bool OnHost(NodeId id, int index, bool is_input) {
    const Node& node = graph_.node(id);
    const PlacementDevice& device = devices_[node.device];
    if (device.host_memory) return true;
    auto [it, is_new] = kinds_.try_emplace(id);
    if (is_new) kernels_.MemoryKinds(node, device.backend, &it->second.inputs, &it->second.outputs);
    const std::vector<bool>& kinds = is_input ? it->second.inputs : it->second.outputs;
    return index < static_cast<int>(kinds.size()) && kinds[index];
  }

  const Graph& graph_;
  const absl::Span<const PlacementDevice> devices_;
  const KernelCatalog& kernels_;
  absl::flat_hash_map<NodeId, Kinds> kinds_;
};

}  // namespace thalweg
