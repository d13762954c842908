// From constraints to the ordered list of devices that a node or group may have, with the fact behind every device
// (C13-C16).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "thalweg/graph/placement/colocation.h"
#include "thalweg/graph/placement/device_table.h"
#include "thalweg/graph/placement/kernel_support.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

struct Candidates {
  std::vector<int> ordered;  // best first; empty: no device is left
  bool softened = false;     // the request had to be dropped (C15)
  std::shared_ptr<const CandidateFacts> facts;
};

class CandidateFinder {
 public:
  // All must outlive the finder.
  CandidateFinder(const Graph& graph, DeviceTable& devices, KernelSupportTable& support,
                  const Restrictions& restrictions, bool allow_soft_placement)
      : graph_(graph), devices_(devices), support_(support), restrictions_(restrictions), soft_(allow_soft_placement) {}

  // Of a node outside every group: looked up by kernels and request. Requires a well-formed request.
  const Candidates& OfNode(const Node& node);
  // Of a group; computed once.
  const Candidates& OfGroup(const Group& group);

 private:
  Candidates FindForNode(const KernelSupport& support, const RequestedName* request) const;
  Candidates FindForGroup(const Group& group) const;
  CandidateFact GroupFact(const Group& group, int device, const DeviceSet& requested, const DeviceSet& resource) const;
  std::vector<int> Ordered(const DeviceSet& set, const KernelSupport* priorities) const;

  const Graph& graph_;
  DeviceTable& devices_;
  KernelSupportTable& support_;
  const Restrictions& restrictions_;
  const bool soft_;
  absl::flat_hash_map<std::pair<const KernelSupport*, const RequestedName*>, std::unique_ptr<Candidates>> by_key_;
  absl::flat_hash_map<const Group*, std::unique_ptr<Candidates>> by_group_;
};

}  // namespace thalweg
