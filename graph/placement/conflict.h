// Words for placements that cannot be: the smallest set of facts that contradict each other (users' wish A34).
#pragma once

#include <string>

#include "absl/status/status.h"
#include "thalweg/graph/placement/colocation.h"

namespace thalweg {

// What explaining needs to look at.
struct ConflictContext {
  const Graph& graph;
  DeviceTable& devices;
  KernelSupportTable& support;
  const Restrictions& restrictions;
  const ColocationGroups& groups;
};

// The two groups that `link` should have united cannot be one: `why` in general, here who is to blame.
absl::Status ExplainUnionConflict(const ConflictContext& context, const Link& link, const Group& a, const Group& b,
                                  const std::string& why);

// No device is left for `node`, whose group is `group` (null: it is alone).
absl::Status ExplainNoDevice(const ConflictContext& context, NodeId node, const Group* group);

}  // namespace thalweg
