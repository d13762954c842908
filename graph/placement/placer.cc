#include "thalweg/graph/placement/placer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/placement/conflict.h"

namespace thalweg {
namespace {

// Looks at the shape of its input only, so it costs nothing where its input is (C18).
bool IsMetadata(const Node& node) {
  return node.num_data_inputs >= 1 && (node.is("Shape") || node.is("ShapeN") || node.is("Rank") || node.is("Size"));
}

// Makes one value from nothing, so it may be wherever it is needed (C17).
bool IsGenerator(const Node& node) {
  return node.num_data_inputs == 0 && node.num_outputs() == 1 && !IsRef(node.output_types[0]);
}

// Only passes its input on, so it is best where that is (B3).
bool FollowsInput(const Node& node) { return node.is("Switch") || node.is("Exit"); }
// Must be where its reader is (B3).
bool FollowsConsumer(const Node& node) { return node.is("Enter") || node.is("NextIteration"); }

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Must not depend on the build or the process: seeds are quoted in reports.
uint64_t HashName(absl::string_view name, uint64_t seed) {
  uint64_t hash = Mix(seed + 0x9e3779b97f4a7c15u);
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return Mix(hash);
}

}  // namespace

Placer::Placer(const Graph& graph, DeviceTable& devices, KernelSupportTable& support, const Restrictions& restrictions,
               ColocationGroups* groups, const PlacementOptions& options, PlacementPolicy policy)
    : graph_(graph),
      devices_(devices),
      support_(support),
      restrictions_(restrictions),
      groups_(groups),
      policy_(policy),
      finder_(graph, devices, support, restrictions, options.allow_soft_placement) {}

absl::StatusOr<Placement> Placer::PlaceAll() {
  placement_.records.resize(graph_.num_nodes());
  const bool neighbours_matter = policy_.kind == PlacementPolicy::Kind::kDefault && devices_.size() > 1;
  THALWEG_RETURN_IF_ERROR(neighbours_matter ? PlaceByNeighbours() : PlaceInIdOrder());
  return std::move(placement_);
}

absl::Status Placer::PlaceInIdOrder() {
  for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
    if (!graph_.node(id).removed) THALWEG_RETURN_IF_ERROR(PlaceOne(id));
  }
  return absl::OkStatus();
}

absl::Status Placer::PlaceByNeighbours() {
  THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
  std::vector<NodeId> postponed;
  for (NodeId id : order) {
    const Node& node = graph_.node(id);
    if (restrictions_.For(id) == nullptr && (IsGenerator(node) || FollowsConsumer(node))) {
      postponed.push_back(id);
    } else {
      THALWEG_RETURN_IF_ERROR(PlaceOne(id));
    }
  }
  // Backwards, so that a consumer that was postponed itself comes before its producers.
  std::reverse(postponed.begin(), postponed.end());
  const Consumers consumers = graph_.BuildConsumers();
  for (NodeId id : postponed) {
    THALWEG_RETURN_IF_ERROR(CandidatesOf(id).status());
    PlacePostponed(id, consumers);
  }
  return absl::OkStatus();
}

absl::StatusOr<const Candidates*> Placer::CandidatesOf(NodeId id) {
  const Node& node = graph_.node(id);
  const Group* group = groups_ == nullptr ? nullptr : groups_->GroupOf(id);
  if (!node.requested_device.empty()) {
    const RequestedName* request = devices_.Request(node.requested_device);
    if (!request->status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", node.name, "' (", node.op, "): ", request->status.message()));
    }
  }
  const Candidates& candidates = group == nullptr ? finder_.OfNode(node) : finder_.OfGroup(*group);
  if (!candidates.ordered.empty()) return &candidates;
  if (groups_ != nullptr) return ExplainNoDevice({graph_, devices_, support_, restrictions_, *groups_}, id, group);
  ColocationGroups none(graph_, devices_, support_, restrictions_, true);
  return ExplainNoDevice({graph_, devices_, support_, restrictions_, none}, id, nullptr);
}

absl::Status Placer::PlaceOne(NodeId id) {
  THALWEG_ASSIGN_OR_RETURN(const Candidates* candidates, CandidatesOf(id));
  const Node& node = graph_.node(id);
  const Group* group = groups_ == nullptr ? nullptr : groups_->GroupOf(id);
  if (TakeGroupDevice(id, group, *candidates)) return absl::OkStatus();
  if (policy_.kind == PlacementPolicy::Kind::kScatter) {
    const char* rule = candidates->ordered.size() > 1 ? "scatter" : FirstRule(id, *candidates);
    Decide(id, group, *candidates, ChooseScattered(id, group, *candidates), rule, kNoNode);
    return absl::OkStatus();
  }
  if ((IsMetadata(node) || FollowsInput(node)) && devices_.size() > 1) {
    const NodeId input = node.inputs[0].node;
    const int device = placement_.records[input].device;
    if (Contains(candidates->ordered, device)) {
      Decide(id, group, *candidates, device, IsMetadata(node) ? "C18" : "B3", input);
      return absl::OkStatus();
    }
  }
  Decide(id, group, *candidates, candidates->ordered.front(), FirstRule(id, *candidates), kNoNode);
  return absl::OkStatus();
}

void Placer::PlacePostponed(NodeId id, const Consumers& consumers) {
  const Candidates& candidates = **CandidatesOf(id);
  const Group* group = groups_ == nullptr ? nullptr : groups_->GroupOf(id);
  if (TakeGroupDevice(id, group, candidates)) return;
  NodeId witness = kNoNode;
  const int device = DeviceOfConsumers(id, consumers, &witness);
  if (witness != kNoNode && Contains(candidates.ordered, device)) {
    Decide(id, group, candidates, device, IsGenerator(graph_.node(id)) ? "C17" : "B3", witness);
  } else {
    Decide(id, group, candidates, candidates.ordered.front(), FirstRule(id, candidates), kNoNode);
  }
}

// Of a generator: the device of all its consumers, if they agree. Of a loop node: the device of its first data
// consumer.
int Placer::DeviceOfConsumers(NodeId id, const Consumers& consumers, NodeId* witness) const {
  const bool first_only = FollowsConsumer(graph_.node(id));
  int device = -1;
  for (const Consumers::Use& use : consumers.of(id)) {
    if (IsStepBoundary(graph_.node(use.node)) || (first_only && use.port == kControlPort)) continue;
    const int there = placement_.records[use.node].device;
    if (*witness == kNoNode) {
      *witness = use.node;
      device = there;
      if (first_only) return device;
    } else if (there != device) {
      *witness = kNoNode;
      return -1;
    }
  }
  return device;
}

int Placer::ChooseScattered(NodeId id, const Group* group, const Candidates& candidates) const {
  // The smallest name stands for a group, so that the choice does not depend on the order of nodes in a file.
  absl::string_view name = graph_.node(id).name;
  if (group != nullptr) {
    for (NodeId member : group->members) name = std::min(name, graph_.node(member).name);
  }
  std::vector<int> devices = candidates.ordered;
  std::sort(devices.begin(), devices.end());
  return devices[HashName(name, policy_.seed) % devices.size()];
}

const char* Placer::FirstRule(NodeId id, const Candidates& candidates) const {
  if (const Restriction* restriction = restrictions_.For(id)) return restriction->rule;
  if (candidates.softened) return "C15";
  return "C14";
}

bool Placer::TakeGroupDevice(NodeId id, const Group* group, const Candidates& candidates) {
  if (group == nullptr) return false;
  auto it = group_choice_.find(group);
  if (it == group_choice_.end()) return false;
  Decide(id, group, candidates, it->second.device, "C6", it->second.decided_by);
  return true;
}

void Placer::Decide(NodeId id, const Group* group, const Candidates& candidates, int device, const char* rule,
                    NodeId follows) {
  DecisionRecord& record = placement_.records[id];
  record.device = device;
  record.rule = rule;
  record.follows = follows;
  record.candidates = candidates.facts;
  if (group == nullptr || group->members.size() < 2) return;
  record.group = groups_->Representative(id);
  group_choice_.try_emplace(group, GroupChoice{device, id});
}

absl::flat_hash_map<std::string, int> Placer::PlaceStateOnly() {
  absl::flat_hash_map<std::string, int> devices;
  placement_.records.resize(graph_.num_nodes());
  for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
    const Node& node = graph_.node(id);
    const Group* group = node.removed ? nullptr : groups_->GroupOf(id);
    if (!node.stateful() || group == nullptr || group->members.size() < 2) continue;
    absl::StatusOr<const Candidates*> candidates = CandidatesOf(id);
    if (!candidates.ok()) continue;
    if (!TakeGroupDevice(id, group, **candidates)) {
      const bool scatter = policy_.kind == PlacementPolicy::Kind::kScatter;
      const int device = scatter ? ChooseScattered(id, group, **candidates) : (*candidates)->ordered.front();
      Decide(id, group, **candidates, device, "C14", kNoNode);
    }
    devices.emplace(node.name, placement_.records[id].device);
  }
  return devices;
}

}  // namespace thalweg
