#include "thalweg/graph/placement/conflict.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

std::string Quoted(const Node& node) { return absl::StrCat("'", node.name, "' (", node.op, ")"); }

// A demand for certain devices and the node that makes it.
struct Demand {
  NodeId by = kNoNode;
  DeviceSet devices;
  std::string text;  // "requests /device:GPU:0", "is pinned to CPU:1 by 'a.*'"
};

class ConflictFinder {
 public:
  explicit ConflictFinder(const ConflictContext& context) : c_(context) {}

  // The demand that `node` itself makes, if any.
  std::optional<Demand> DemandOf(NodeId id) const {
    if (const Restriction* restriction = c_.restrictions.For(id)) {
      return Demand{id, restriction->allowed, absl::StrCat("has a fixed device: ", restriction->text)};
    }
    const Node& node = c_.graph.node(id);
    if (node.requested_device.empty()) return std::nullopt;
    const RequestedName* request = c_.devices.Request(node.requested_device);
    std::string text = absl::StrCat("requests ", node.requested_device);
    if (request->matches.none())
      absl::StrAppend(&text, ", which does not exist (devices: ", c_.devices.Names(c_.devices.all()), ")");
    return Demand{id, request->matches, std::move(text)};
  }

  // Sentences naming two members (or one) that cannot be on one device.
  std::string Describe(const std::vector<NodeId>& all_members, const std::vector<Link>& links) const {
    const std::vector<Demand> demands = DistinctDemands(all_members);
    const std::vector<NodeId> members = WithDistinctKernels(all_members);
    for (const Demand& demand : demands) {
      if (demand.devices.none()) return Sentence(demand);
    }
    for (const Demand& demand : demands) {
      for (NodeId member : members) {
        const KernelSupport* support = c_.support.For(c_.graph.node(member));
        if ((support->devices & demand.devices).any()) continue;
        return absl::StrCat(Sentence(demand), ", but ", NoKernelSentence(member, demand.devices),
                            Chain(demand.by, member, links));
      }
    }
    for (size_t i = 0; i < demands.size(); ++i) {
      for (size_t j = i + 1; j < demands.size(); ++j) {
        if ((demands[i].devices & demands[j].devices).any()) continue;
        return absl::StrCat(Sentence(demands[i]), ", but ", Sentence(demands[j]),
                            Chain(demands[i].by, demands[j].by, links));
      }
    }
    return DescribeKernels(members, links);
  }

 private:
  // The first demand for each set of devices: a large group makes few different ones.
  std::vector<Demand> DistinctDemands(const std::vector<NodeId>& members) const {
    std::vector<Demand> demands;
    for (NodeId member : members) {
      std::optional<Demand> demand = DemandOf(member);
      if (!demand) continue;
      const bool known =
          std::any_of(demands.begin(), demands.end(), [&](const Demand& d) { return d.devices == demand->devices; });
      if (!known) demands.push_back(*std::move(demand));
    }
    return demands;
  }

  // The first member for each set of devices with kernels.
  std::vector<NodeId> WithDistinctKernels(const std::vector<NodeId>& members) const {
    std::vector<NodeId> distinct;
    for (NodeId member : members) {
      const DeviceSet& devices = c_.support.For(c_.graph.node(member))->devices;
      const bool known = std::any_of(distinct.begin(), distinct.end(), [&](NodeId other) {
        return c_.support.For(c_.graph.node(other))->devices == devices;
      });
      if (!known) distinct.push_back(member);
    }
    return distinct;
  }

  // No demands to blame: two members whose kernels are on different devices, or one that has none at all.
  std::string DescribeKernels(const std::vector<NodeId>& members, const std::vector<Link>& links) const {
    for (NodeId member : members) {
      if (c_.support.For(c_.graph.node(member))->devices.none()) return NoKernelSentence(member, c_.devices.all());
    }
    for (size_t i = 0; i < members.size(); ++i) {
      for (size_t j = i + 1; j < members.size(); ++j) {
        const DeviceSet& a = c_.support.For(c_.graph.node(members[i]))->devices;
        const DeviceSet& b = c_.support.For(c_.graph.node(members[j]))->devices;
        if ((a & b).any()) continue;
        return absl::StrCat(Quoted(c_.graph.node(members[i])), " has kernels on ", c_.devices.Names(a), " only and ",
                            Quoted(c_.graph.node(members[j])), " on ", c_.devices.Names(b), " only",
                            Chain(members[i], members[j], links));
      }
    }
    return "no single device satisfies all members together";
  }

  std::string Sentence(const Demand& demand) const {
    return absl::StrCat(Quoted(c_.graph.node(demand.by)), " ", demand.text);
  }

  std::string NoKernelSentence(NodeId member, const DeviceSet& where) const {
    const KernelSupport* support = c_.support.For(c_.graph.node(member));
    std::string text = absl::StrCat(Quoted(c_.graph.node(member)), " cannot run on ", c_.devices.Names(where));
    for (int d = 0; d < c_.devices.size(); ++d) {
      if (where[d] && !support->devices[d]) return absl::StrCat(text, ": ", support->refusals[d]);
    }
    return text;
  }

  // "; they must share a device: a -- reference edge -- b -- _class -- c", the shortest such chain.
  std::string Chain(NodeId from, NodeId to, const std::vector<Link>& links) const {
    if (from == to) return "";
    absl::flat_hash_map<NodeId, std::vector<const Link*>> links_of;
    for (const Link& link : links) {
      links_of[link.a].push_back(&link);
      links_of[link.b].push_back(&link);
    }
    absl::flat_hash_map<NodeId, const Link*> reached_by{{from, nullptr}};
    std::deque<NodeId> queue{from};
    while (!queue.empty() && !reached_by.contains(to)) {
      const NodeId node = queue.front();
      queue.pop_front();
      for (const Link* link : links_of[node]) {
        const NodeId next = link->a == node ? link->b : link->a;
        if (reached_by.emplace(next, link).second) queue.push_back(next);
      }
    }
    if (!reached_by.contains(to)) return "";
    std::vector<std::string> words{absl::StrCat("'", c_.graph.node(to).name, "'")};
    for (NodeId node = to; node != from;) {
      const Link* link = reached_by.at(node);
      node = link->a == node ? link->b : link->a;
      words.push_back(link->kind == LinkKind::kReference ? "reference or resource edge" : "_class");
      words.push_back(absl::StrCat("'", c_.graph.node(node).name, "'"));
    }
    std::reverse(words.begin(), words.end());
    return absl::StrCat("; they must share a device: ", absl::StrJoin(words, " -- "));
  }

  const ConflictContext& c_;
};

constexpr char kAdvice[] = ". Change the request, drop the colocation, add a device, or allow soft placement";

std::string OtherMembers(const Graph& graph, NodeId node, const std::vector<NodeId>& members) {
  constexpr size_t kShown = 3;
  std::vector<std::string> names;
  size_t others = 0;
  for (NodeId member : members) {
    if (member == node) continue;
    if (++others <= kShown) names.push_back(absl::StrCat("'", graph.node(member).name, "'"));
  }
  if (others == 0) return "";
  return absl::StrCat(", which shares a device with ", absl::StrJoin(names, ", "),
                      others > kShown ? absl::StrCat(" and ", others - kShown, " more") : "");
}

}  // namespace

absl::Status ExplainUnionConflict(const ConflictContext& context, const Link& link, const Group& a, const Group& b,
                                  const std::string& why) {
  std::vector<NodeId> members = a.members;
  members.insert(members.end(), b.members.begin(), b.members.end());
  std::vector<Link> links = context.groups.LinksAmong(members);
  links.push_back(link);
  const bool reference = link.kind == LinkKind::kReference;
  return absl::InvalidArgumentError(absl::StrCat(
      "cannot place nodes ", Quoted(context.graph.node(link.a)), " and ", Quoted(context.graph.node(link.b)), ": ",
      reference ? "a reference or resource edge ties them to one device" : "_class ties them to one device", ", but ",
      why, ": ", ConflictFinder(context).Describe(members, links), kAdvice, reference ? " [C10]" : " [C6]"));
}

absl::Status ExplainNoDevice(const ConflictContext& context, NodeId node, const Group* group) {
  const std::vector<NodeId> members = group == nullptr ? std::vector<NodeId>{node} : group->members;
  const KernelSupport* support = context.support.For(context.graph.node(node));
  if (support->devices.none()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot place node ", Quoted(context.graph.node(node)), ": ",
                                                   absl::StrJoin(support->refusals, "; "), " [C5]"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("cannot place node ", Quoted(context.graph.node(node)), OtherMembers(context.graph, node, members),
                   ": ", ConflictFinder(context).Describe(members, context.groups.LinksAmong(members)), kAdvice,
                   members.size() > 1 ? " [C16, C6]" : " [C16]"));
}

}  // namespace thalweg
