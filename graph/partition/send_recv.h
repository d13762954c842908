// Makes the _Send and _Recv nodes of transfers and shares them among consumers (B7-B13).
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/partition/derived_placement.h"
#include "thalweg/graph/partition/partition.h"

namespace thalweg {

class SendRecvMaker {
 public:
  // All must outlive the maker.
  SendRecvMaker(Graph& graph, Placement& placement, absl::Span<const PlacementDevice> devices,
                DerivedPlacement& derived);

  // The _Recv through which `consumer` gets `source` on its device; made if there is none yet for that source, device
  // and memory kind (B10). For a control source the consumer takes a control edge from it.
  absl::StatusOr<NodeId> RecvFor(Endpoint source, bool source_on_host, NodeId consumer, bool destination_on_host);

  std::vector<Transfer> TakeTransfers() { return std::move(transfers_); }

 private:
  absl::StatusOr<int> MakePair(Endpoint source, bool source_on_host, NodeId consumer, bool destination_on_host);
  // The value that stands for a control edge: an empty constant made after `after` (B11).
  absl::StatusOr<Endpoint> ControlToken(NodeId after);

  Graph& graph_;
  Placement& placement_;
  const absl::Span<const PlacementDevice> devices_;
  DerivedPlacement& derived_;
  const AttrMap token_attrs_;  // shared by all tokens
  std::vector<Transfer> transfers_;
  absl::flat_hash_map<std::tuple<Endpoint, int, bool>, int> pairs_;  // (source, destination device, on host) -> pair
  absl::flat_hash_map<NodeId, Endpoint> tokens_;
};

}  // namespace thalweg
