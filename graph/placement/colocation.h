// Which nodes must share a device, and what their group allows: union-find over reference edges, resource edges and
// `_class` attributes (C2, C6-C11).
//
// Only nodes tied to others, or restricted by pins, files and the like, belong to a group; the rest have none and are
// judged by their kernels and request alone, which keeps large ordinary graphs cheap.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/placement/device_table.h"
#include "thalweg/graph/placement/kernel_support.h"
#include "thalweg/graph/placement/restrictions.h"

namespace thalweg {

enum class LinkKind {
  kReference,  // a reference or resource edge: can never be cut (C10)
  kClass,      // a `_class` entry: ignored under soft placement if it cannot be met (C9)
};

// Why two nodes must share a device.
struct Link {
  NodeId a = kNoNode;
  NodeId b = kNoNode;
  LinkKind kind = LinkKind::kReference;
};

struct Group {
  std::vector<NodeId> members;
  DeviceSet supported;                        // every member has a kernel there
  const KernelSupport* priorities = nullptr;  // whose kernel priorities order the devices; null: default order (C7)
  bool priorities_disagree = false;
  DeviceName requested;
  NodeId requested_by = kNoNode;
  DeviceName resource;  // request of a node that owns state: harder to override (C11)
  NodeId resource_by = kNoNode;
  DeviceSet allowed;  // by restrictions
  NodeId restricted_by = kNoNode;
};

class ColocationGroups {
 public:
  // All must outlive the groups.
  ColocationGroups(const Graph& graph, DeviceTable& devices, KernelSupportTable& support,
                   const Restrictions& restrictions, bool allow_soft_placement);

  // Unites what reference and resource edges tie together, then what `_class` attributes do. A group that cannot exist
  // is InvalidArgument explaining the conflict, or, if `failures` is not null, skipped and its nodes listed there.
  absl::Status Build(std::vector<NodeId>* failures);

  // Null for a node that is tied to no other and restricted by nothing.
  const Group* GroupOf(NodeId node);
  // The node that stands for the group of `node`, or kNoNode.
  NodeId Representative(NodeId node);
  // Every link that Build made among the given nodes; for explaining conflicts.
  std::vector<Link> LinksAmong(const std::vector<NodeId>& members) const;

 private:
  NodeId Root(NodeId node);
  Group& EnsureGroup(NodeId node);
  absl::Status LinkReferences(std::vector<NodeId>* failures);
  absl::Status LinkClasses(std::vector<NodeId>* failures);
  absl::Status Unite(const Link& link);
  // The constraints of both groups together, without members; an error if there can be no such group.
  absl::Status Merge(const Group& a, const Group& b, LinkKind kind, Group* merged) const;
  bool IsRequestOfState(const Node& node) const;

  const Graph& graph_;
  DeviceTable& devices_;
  KernelSupportTable& support_;
  const Restrictions& restrictions_;
  const bool soft_;
  std::vector<NodeId> parent_;
  std::vector<std::unique_ptr<Group>> groups_;  // by root
};

// The names of the groups that a node's `_class` attribute lists ("loc:@" cut off).
std::vector<absl::string_view> ClassNames(const Node& node);
// True if input `index` of `node` ties it to the producer's device.
bool IsReferenceOrResourceEdge(const Graph& graph, const Node& node, int index);

}  // namespace thalweg
