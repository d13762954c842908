// Partitioning: cuts the edges that cross devices (or memory kinds) of a placed graph and inserts _Send/_Recv pairs.
//
// The result stays one Graph whose nodes carry their device; the nodes with one device index are that device's part.
// A pair shares a dense slot number (attr "pair"), no string keys.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/graph/shape_inference.h"

namespace thalweg {

struct Transfer {
  int pair = -1;                  // dense index, also attr "pair" of both nodes
  Endpoint source;                // the value that crosses (port kControlPort: a control edge)
  int source_device = -1;
  int destination_device = -1;
  bool source_on_host = true;     // memory kinds at both ends
  bool destination_on_host = true;
  NodeId send = kNoNode;
  NodeId recv = kNoNode;
  std::vector<NodeId> consumers;  // who reads it on the destination
  int64_t bytes = -1;             // -1: shape unknown
  DType dtype = DType::kInvalid;
  std::string cause;              // "no kernel for ArgMax on sim", "pinned", "host memory input", "feed", "fetch", "policy"
};

struct PartitionResult {
  std::vector<Transfer> transfers;  // by pair
};

// Rewrites `graph` (every live node has a device). One pair per (source endpoint, destination device, destination memory
// kind): B10. Ops used: `_Send(tensor: T)`, `_Recv() -> tensor: tensor_type`, attrs pair, tensor_name, send_device,
// recv_device; control edges cross as an empty constant (B11).
absl::StatusOr<PartitionResult> PartitionGraph(Graph& graph, const Placement& placement, absl::Span<const PlacementDevice> devices,
                                               const KernelCatalog& kernels, const InferredShapes& shapes);

}  // namespace thalweg
