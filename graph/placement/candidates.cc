#include "thalweg/graph/placement/candidates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

// The request without what soft placement gives up (C15).
DeviceName WithoutTypeAndId(DeviceName name) {
  name.type.reset();
  name.id.reset();
  return name;
}

std::string DroppedRequest(const std::string& request) {
  return absl::StrCat("soft placement dropped the request ", request);
}

}  // namespace

const Candidates& CandidateFinder::OfNode(const Node& node) {
  const RequestedName* request = node.requested_device.empty() ? nullptr : devices_.Request(node.requested_device);
  const KernelSupport* support = support_.For(node);
  std::unique_ptr<Candidates>& slot = by_key_[{support, request}];
  if (slot == nullptr) slot = std::make_unique<Candidates>(FindForNode(*support, request));
  return *slot;
}

const Candidates& CandidateFinder::OfGroup(const Group& group) {
  std::unique_ptr<Candidates>& slot = by_group_[&group];
  if (slot == nullptr) slot = std::make_unique<Candidates>(FindForGroup(group));
  return *slot;
}

std::vector<int> CandidateFinder::Ordered(const DeviceSet& set, const KernelSupport* priorities) const {
  std::vector<int> order;
  for (int d = 0; d < devices_.size(); ++d) {
    if (set[d]) order.push_back(d);
  }
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    if (priorities != nullptr && priorities->priorities[a] != priorities->priorities[b]) {
      return priorities->priorities[a] > priorities->priorities[b];
    }
    return devices_.rank(a) < devices_.rank(b);
  });
  return order;
}

Candidates CandidateFinder::FindForNode(const KernelSupport& support, const RequestedName* request) const {
  Candidates found;
  DeviceSet wanted = request == nullptr ? devices_.all() : request->matches;
  if ((support.devices & wanted).none() && soft_ && request != nullptr) {
    wanted = devices_.Matching(WithoutTypeAndId(request->name));
    found.softened = (support.devices & wanted).any();
  }
  auto facts = std::make_shared<CandidateFacts>(devices_.size());
  for (int d = 0; d < devices_.size(); ++d) {
    CandidateFact& fact = (*facts)[d];
    fact.device = d;
    fact.feasible = support.devices[d] && wanted[d];
    if (!support.devices[d]) {
      fact.rule = "C3";
      fact.fact = support.refusals[d];
    } else if (!wanted[d]) {
      fact.rule = "C13";
      fact.fact = absl::StrCat("the node requests ", request->text);
    } else if (found.softened) {
      fact.rule = "C15";
      fact.fact = DroppedRequest(request->text);
    }
  }
  found.ordered = Ordered(support.devices & wanted, support.has_priorities ? &support : nullptr);
  found.facts = std::move(facts);
  return found;
}

Candidates CandidateFinder::FindForGroup(const Group& group) const {
  Candidates found;
  DeviceSet requested = devices_.Matching(group.requested);
  DeviceSet resource = devices_.Matching(group.resource);
  const DeviceSet possible = group.supported & group.allowed;
  if ((possible & requested & resource).none() && soft_) {
    // First keep where state was asked for, then give that up too.
    requested = devices_.Matching(WithoutTypeAndId(group.requested));
    if ((possible & requested & resource).none()) resource = devices_.Matching(WithoutTypeAndId(group.resource));
    found.softened = (possible & requested & resource).any();
  }
  const DeviceSet feasible = possible & requested & resource;
  auto facts = std::make_shared<CandidateFacts>(devices_.size());
  for (int d = 0; d < devices_.size(); ++d) {
    CandidateFact& fact = (*facts)[d];
    if (!feasible[d]) {
      fact = GroupFact(group, d, requested, resource);
    } else if (found.softened) {
      fact.rule = "C15";
      fact.fact = DroppedRequest(group.requested.ToString());
      fact.source = group.requested_by;
    }
    fact.device = d;
    fact.feasible = feasible[d];
  }
  found.ordered = Ordered(feasible, group.priorities_disagree ? nullptr : group.priorities);
  found.facts = std::move(facts);
  return found;
}

// Why `device` is out for a group.
CandidateFact CandidateFinder::GroupFact(const Group& group, int device, const DeviceSet& requested,
                                         const DeviceSet& resource) const {
  CandidateFact fact;
  if (!group.supported[device]) {
    fact.rule = "C3";
    for (NodeId member : group.members) {
      const KernelSupport* support = support_.For(graph_.node(member));
      if (support->devices[device]) continue;
      fact.fact = support->refusals[device];
      fact.source = member;
      break;
    }
  } else if (!group.allowed[device]) {
    for (NodeId member : group.members) {
      const Restriction* restriction = restrictions_.For(member);
      if (restriction == nullptr || restriction->allowed[device]) continue;
      fact.rule = restriction->rule;
      fact.fact = restriction->text;
      fact.source = member;
      break;
    }
  } else if (!requested[device]) {
    fact.rule = "C13";
    fact.fact = absl::StrCat("the group requests ", group.requested.ToString());
    fact.source = group.requested_by;
  } else if (!resource[device]) {
    fact.rule = "C11";
    fact.fact = absl::StrCat("its state is requested on ", group.resource.ToString());
    fact.source = group.resource_by;
  }
  return fact;
}

}  // namespace thalweg
