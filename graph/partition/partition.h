// Partitioning: cuts the edges that cross devices (or memory kinds) of a placed graph and inserts _Send/_Recv pairs.
//
// The result stays one Graph whose nodes carry their device; the nodes with one device index are that device's part.
// A pair shares a dense slot number (attr "pair"), no string keys. Rules B1-B17, with these differences that one
// process with one dependency state allows:
// - What the other attributes of B8 say of a pair (tensor, devices) stands in its Transfer, not in both nodes.
// - Every _Recv has a control input from its _Send. That edge carries order, frame, iteration and deadness (A45, B23,
//   B24), so there are no control loops, and the order of nodes stays topological.
// - A control edge crosses as an empty constant; its consumer takes the control edge from the _Recv itself (B11).
// - No transfer stands between a loop's Enter or NextIteration and a Merge: the loop node is repeated on the Merge's
//   device and its input crosses instead (B3). An Enter is repeated for every consumer elsewhere, so that loop
//   invariants cross once per loop, not once per iteration.
// - Where a value that is read through a reference crosses, an Identity on the source device does the reading, after
//   the other inputs of the consumer are there (B14).
// - Memory kinds of the two ends (B12) are in the attrs `_input_hostmem` of _Send and `_output_hostmem` of _Recv (A84):
//   the list [0] for host memory, absent otherwise, and absent on devices that have host memory only.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

struct Transfer {
  int pair = -1;    // dense index, also attr "pair" of both nodes
  Endpoint source;  // the value that crosses (port kControlPort: a control edge)
  int source_device = -1;
  int destination_device = -1;
  bool source_on_host = true;  // memory kinds at both ends
  bool destination_on_host = true;
  NodeId send = kNoNode;
  NodeId recv = kNoNode;
  std::vector<NodeId> consumers;  // who reads it on the destination
  int64_t bytes = -1;             // -1: shape unknown; filled in by CompileGraph
  DType dtype = DType::kInvalid;
  std::string cause;  // "no kernel for ArgMax on sim", "pinned", "host memory input", "feed", "fetch", "policy"
};

struct PartitionResult {
  std::vector<Transfer> transfers;  // by pair
};

// Rewrites `graph` and sets Node::device of every live node. One pair per (source endpoint, destination device,
// destination memory kind): B10. Ops used: `_Send(tensor: T)`, `_Recv() -> tensor: tensor_type`, both with the attr
// pair. Nodes that it makes get records in `placement`. Internal if a node has no
// device (B1), InvalidArgument if a reference edge would have to cross (C10).
absl::StatusOr<PartitionResult> PartitionGraph(Graph& graph, Placement& placement,
                                               absl::Span<const PlacementDevice> devices, const KernelCatalog& kernels);

}  // namespace thalweg
