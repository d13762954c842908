// Walks the nodes and gives each a device: the order of decisions, apart from the constraints and the public functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/placement/candidates.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/graph/placement/policy.h"

namespace thalweg {

class Placer {
 public:
  // `groups` may be null: nobody is tied to anybody then. All must outlive the placer.
  Placer(const Graph& graph, DeviceTable& devices, KernelSupportTable& support, const Restrictions& restrictions,
         ColocationGroups* groups, const PlacementOptions& options, PlacementPolicy policy);

  // InvalidArgument naming the first node that has no candidates.
  absl::StatusOr<Placement> PlaceAll();
  // The devices of all nodes that own state and are tied to others; groups without candidates are skipped.
  absl::flat_hash_map<std::string, int> PlaceStateOnly();

 private:
  absl::Status PlaceInIdOrder();
  absl::Status PlaceByNeighbours();
  absl::Status PlaceOne(NodeId id);
  void PlacePostponed(NodeId id, const Consumers& consumers);
  // Candidates of the node; an error explaining the conflict if there are none.
  absl::StatusOr<const Candidates*> CandidatesOf(NodeId id);
  int ChooseScattered(NodeId id, const Group* group, const Candidates& candidates) const;
  void Decide(NodeId id, const Group* group, const Candidates& candidates, int device, const char* rule,
              NodeId follows);
  // True if the group of `id` has a device already; `id` then gets it.
  bool TakeGroupDevice(NodeId id, const Group* group, const Candidates& candidates);
  int DeviceOfConsumers(NodeId id, const Consumers& consumers, NodeId* witness) const;
  const char* FirstRule(NodeId id, const Candidates& candidates) const;

  const Graph& graph_;
  DeviceTable& devices_;
  KernelSupportTable& support_;
  const Restrictions& restrictions_;
  ColocationGroups* groups_;
  const PlacementPolicy policy_;
  CandidateFinder finder_;
  Placement placement_;
  struct GroupChoice {
    int device;
    NodeId decided_by;
  };
  absl::flat_hash_map<const Group*, GroupChoice> group_choice_;
};

}  // namespace thalweg
