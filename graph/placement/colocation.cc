#include "thalweg/graph/placement/colocation.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/lowering/function_body.h"
#include "thalweg/graph/placement/conflict.h"

namespace thalweg {
namespace {

bool CarriesState(DType type) { return IsRef(type) || type == DType::kResource; }

// Call ops place what they call by themselves; being tied to two resources on two devices is no contradiction for them.
bool CallsFunctions(const Node& node) {
  return node.schema == nullptr || TakesFunctions(*node.schema);
}

}  // namespace

std::vector<absl::string_view> ClassNames(const Node& node) {
  const Attr* value = node.attrs.Find("_class");
  if (value == nullptr) return {};
  const auto* list = std::get_if<std::shared_ptr<const AttrList>>(value);
  if (list == nullptr) return {};
  const auto* texts = std::get_if<std::vector<std::string>>(&(*list)->values);
  if (texts == nullptr) return {};
  std::vector<absl::string_view> names;
  for (const std::string& text : *texts) {
    absl::string_view name = text;
    if (absl::ConsumePrefix(&name, "loc:@")) names.push_back(name);
  }
  return names;
}

bool IsReferenceOrResourceEdge(const Graph& graph, const Node& node, int index) {
  const Endpoint input = node.inputs[index];
  const Node& producer = graph.node(input.node);
  if (input.port >= producer.num_outputs()) return false;
  const DType given = producer.output_types[input.port];
  if (given == DType::kResource) return !IsStepBoundary(node) && !IsStepBoundary(producer);
  if (!IsRef(given) || node.schema == nullptr) return false;
  std::vector<DType> wanted;  // a reference may also be read as a value, which ties nothing
  if (!ResolveInputTypes(node.node_attrs(), &wanted).ok() || index >= static_cast<int>(wanted.size())) return false;
  return IsRef(wanted[index]);
}

ColocationGroups::ColocationGroups(const Graph& graph, DeviceTable& devices, KernelSupportTable& support,
                                   const Restrictions& restrictions, bool allow_soft_placement)
    : graph_(graph), devices_(devices), support_(support), restrictions_(restrictions), soft_(allow_soft_placement) {
  parent_.resize(graph.num_nodes());
  for (NodeId id = 0; id < graph.num_nodes(); ++id) parent_[id] = id;
  groups_.resize(graph.num_nodes());
}

absl::Status ColocationGroups::Build(std::vector<NodeId>* failures) {
  THALWEG_RETURN_IF_ERROR(LinkReferences(failures));
  return LinkClasses(failures);
}

absl::Status ColocationGroups::LinkReferences(std::vector<NodeId>* failures) {
  for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
    const Node& node = graph_.node(id);
    if (node.removed) continue;
    if (restrictions_.For(id) != nullptr) EnsureGroup(id);
    for (int i = 0; i < node.num_data_inputs; ++i) {
      const Endpoint input = node.inputs[i];
      if (!CarriesState(graph_.node(input.node).output_types[input.port])) continue;
      if (!IsReferenceOrResourceEdge(graph_, node, i)) continue;
      absl::Status status = Unite({input.node, id, LinkKind::kReference});
      if (status.ok() || CallsFunctions(node)) continue;
      if (failures == nullptr) return status;
      failures->push_back(id);
    }
  }
  return absl::OkStatus();
}

absl::Status ColocationGroups::LinkClasses(std::vector<NodeId>* failures) {
  // A group may be named after a node that is not there: its first member then stands for it (C8).
  absl::flat_hash_map<absl::string_view, NodeId> first_member;
  for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
    const Node& node = graph_.node(id);
    if (node.removed) continue;
    for (absl::string_view name : ClassNames(node)) {
      NodeId leader = graph_.Find(name);
      if (leader == kNoNode) leader = first_member.emplace(name, id).first->second;
      absl::Status status = Unite({leader, id, LinkKind::kClass});
      if (status.ok() || soft_) continue;
      if (failures == nullptr) return status;
      failures->push_back(id);
    }
  }
  return absl::OkStatus();
}

const Group* ColocationGroups::GroupOf(NodeId node) { return groups_[Root(node)].get(); }

NodeId ColocationGroups::Representative(NodeId node) {
  const Group* group = GroupOf(node);
  return group == nullptr || group->members.size() < 2 ? kNoNode : group->members.front();
}

NodeId ColocationGroups::Root(NodeId node) {
  while (parent_[node] != node) {
    parent_[node] = parent_[parent_[node]];
    node = parent_[node];
  }
  return node;
}

bool ColocationGroups::IsRequestOfState(const Node& node) const {
  return node.num_data_inputs == 0 && node.num_outputs() == 1 && CarriesState(node.output_types[0]);
}

Group& ColocationGroups::EnsureGroup(NodeId node) {
  std::unique_ptr<Group>& slot = groups_[Root(node)];
  if (slot != nullptr) return *slot;
  slot = std::make_unique<Group>();
  slot->members = {node};
  const KernelSupport* support = support_.For(graph_.node(node));
  slot->supported = support->devices;
  if (support->has_priorities) slot->priorities = support;
  slot->allowed = devices_.all();
  if (const Restriction* restriction = restrictions_.For(node)) {
    slot->allowed = restriction->allowed;
    slot->restricted_by = node;
  }
  const absl::string_view text = graph_.node(node).requested_device;
  // A restriction replaces the request of its node; a malformed request is reported when the node is placed.
  if (!text.empty() && slot->restricted_by == kNoNode && devices_.Request(text)->status.ok()) {
    slot->requested = devices_.Request(text)->name;
    slot->requested_by = node;
    if (IsRequestOfState(graph_.node(node))) {
      slot->resource = slot->requested;
      slot->resource_by = node;
    }
  }
  return *slot;
}

absl::Status ColocationGroups::Merge(const Group& a, const Group& b, LinkKind kind, Group* merged) const {
  // The consumer's request (b) gives way to the producer's along a reference edge (C10).
  merged->requested = b.requested;
  const auto mode = kind == LinkKind::kReference ? DeviceName::MergeMode::kOverride
                    : soft_                      ? DeviceName::MergeMode::kSoft
                                                 : DeviceName::MergeMode::kStrict;
  THALWEG_RETURN_IF_ERROR(merged->requested.Merge(a.requested, mode));
  merged->requested_by = a.requested_by != kNoNode ? a.requested_by : b.requested_by;
  merged->resource = b.resource;
  THALWEG_RETURN_IF_ERROR(merged->resource.Merge(a.resource, DeviceName::MergeMode::kStrict));
  merged->resource_by = a.resource_by != kNoNode ? a.resource_by : b.resource_by;
  merged->supported = a.supported & b.supported;
  if (merged->supported.none()) return absl::InvalidArgumentError("no device has kernels for all of them");
  merged->allowed = a.allowed & b.allowed;
  if (merged->allowed.none()) return absl::InvalidArgumentError("they are held on different devices");
  merged->restricted_by = a.restricted_by != kNoNode ? a.restricted_by : b.restricted_by;

  const bool both = a.priorities != nullptr && b.priorities != nullptr;
  merged->priorities_disagree =
      a.priorities_disagree || b.priorities_disagree || (both && a.priorities->priorities != b.priorities->priorities);
  if (!merged->priorities_disagree) merged->priorities = a.priorities != nullptr ? a.priorities : b.priorities;
  return absl::OkStatus();
}

absl::Status ColocationGroups::Unite(const Link& link) {
  if (link.a == link.b) return absl::OkStatus();
  Group& a = EnsureGroup(link.a);
  Group& b = EnsureGroup(link.b);
  const NodeId root_a = Root(link.a);
  const NodeId root_b = Root(link.b);
  if (root_a == root_b) return absl::OkStatus();
  Group merged;
  if (absl::Status status = Merge(a, b, link.kind, &merged); !status.ok()) {
    return ExplainUnionConflict({graph_, devices_, support_, restrictions_, *this}, link, a, b,
                                std::string(status.message()));
  }
  // The smaller list of members moves, so that no node moves more than log(n) times.
  const bool a_stays = a.members.size() >= b.members.size();
  Group& stays = a_stays ? a : b;
  Group& goes = a_stays ? b : a;
  merged.members = std::move(stays.members);
  merged.members.insert(merged.members.end(), goes.members.begin(), goes.members.end());
  stays = std::move(merged);
  const NodeId root = a_stays ? root_a : root_b;
  const NodeId child = a_stays ? root_b : root_a;
  parent_[child] = root;
  groups_[child].reset();
  return absl::OkStatus();
}

std::vector<Link> ColocationGroups::LinksAmong(const std::vector<NodeId>& members) const {
  const absl::flat_hash_set<NodeId> inside(members.begin(), members.end());
  absl::flat_hash_map<absl::string_view, NodeId> leaders;
  std::vector<Link> links;
  for (NodeId id : members) {
    const Node& node = graph_.node(id);
    for (int i = 0; i < node.num_data_inputs; ++i) {
      if (!inside.contains(node.inputs[i].node) || !IsReferenceOrResourceEdge(graph_, node, i)) continue;
      links.push_back({node.inputs[i].node, id, LinkKind::kReference});
    }
    for (absl::string_view name : ClassNames(node)) {
      const NodeId named = graph_.Find(name);
      const NodeId leader = inside.contains(named) ? named : leaders.emplace(name, id).first->second;
      if (leader != id) links.push_back({leader, id, LinkKind::kClass});
    }
  }
  return links;
}

}  // namespace thalweg
