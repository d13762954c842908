#include "thalweg/graph/placement/restrictions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "re2/re2.h"
#include "thalweg/graph/internal_nodes.h"

namespace thalweg {
namespace {

// The devices that a pin or file means by `text`; at least one.
absl::StatusOr<const RequestedName*> NamedDevice(DeviceTable& devices, const std::string& text,
                                                 const std::string& where) {
  const RequestedName* request = devices.Request(text);
  if (!request->status.ok()) return absl::InvalidArgumentError(absl::StrCat(where, ": ", request->status.message()));
  if (request->matches.none()) {
    return absl::NotFoundError(absl::StrCat(where, " names device ", text,
                                            ", which does not exist (devices: ", devices.Names(devices.all()), ")"));
  }
  return request;
}

template <typename Visit>
void ForEachMatch(const Graph& graph, const RE2& pattern, Visit visit) {
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (!node.removed && RE2::FullMatch(re2::StringPiece(node.name.data(), node.name.size()), pattern)) visit(id);
  }
}

}  // namespace

std::vector<NodeId> PinnedNodes(const Graph& graph, absl::Span<const PlacementPin> pins) {
  std::vector<NodeId> nodes;
  for (const PlacementPin& pin : pins) {
    const RE2 pattern(pin.pattern, RE2::Quiet);
    if (pattern.ok()) ForEachMatch(graph, pattern, [&](NodeId id) { nodes.push_back(id); });
  }
  return nodes;
}

absl::StatusOr<Restrictions> Restrictions::Make(const Graph& graph, DeviceTable& devices,
                                                const PlacementOptions& options) {
  // Later ones replace earlier ones for the same node: a file is obeyed exactly, and a pin moves even what has a place.
  Restrictions restrictions;
  THALWEG_RETURN_IF_ERROR(restrictions.AddEarlierChoices(graph, devices, options));
  THALWEG_RETURN_IF_ERROR(restrictions.AddPins(graph, devices, options));
  THALWEG_RETURN_IF_ERROR(restrictions.AddFile(graph, devices, options));
  restrictions.AddBoundary(graph);
  return restrictions;
}

const Restriction* Restrictions::Add(DeviceSet allowed, const char* rule, std::string text) {
  all_.push_back(std::make_unique<Restriction>(Restriction{allowed, rule, std::move(text)}));
  return all_.back().get();
}

absl::Status Restrictions::AddEarlierChoices(const Graph& graph, const DeviceTable& devices,
                                             const PlacementOptions& options) {
  std::vector<const Restriction*> by_device(devices.size(), nullptr);
  for (const auto& [name, device] : options.stateful_assignments) {
    const NodeId node = graph.Find(name);
    if (node == kNoNode) continue;
    if (device < 0 || device >= devices.size()) {
      return absl::InternalError(
          absl::StrCat("node '", name, "' was placed on device ", device, ", which does not exist (C20)"));
    }
    if (by_device[device] == nullptr) {
      by_device[device] =
          Add(DeviceSet().set(device), "C21", absl::StrCat("its state lives on ", devices.Name(device)));
    }
    by_node_[node] = by_device[device];
  }
  return absl::OkStatus();
}

absl::Status Restrictions::AddPins(const Graph& graph, DeviceTable& devices, const PlacementOptions& options) {
  for (const PlacementPin& pin : options.pins) {
    const std::string where = absl::StrCat("pin '", pin.pattern, "=", pin.device, "'");
    const RE2 pattern(pin.pattern, RE2::Quiet);
    if (!pattern.ok())
      return absl::InvalidArgumentError(absl::StrCat(where, ": bad regular expression: ", pattern.error()));
    THALWEG_ASSIGN_OR_RETURN(const RequestedName* request, NamedDevice(devices, pin.device, where));
    const Restriction* restriction =
        Add(request->matches, "pin", absl::StrCat("pinned to ", pin.device, " by '", pin.pattern, "'"));
    ForEachMatch(graph, pattern, [&](NodeId id) { by_node_[id] = restriction; });
  }
  return absl::OkStatus();
}

absl::Status Restrictions::AddFile(const Graph& graph, DeviceTable& devices, const PlacementOptions& options) {
  if (options.fixed.empty()) return absl::OkStatus();
  // Every entry must make sense, also those of nodes that this step does not have; the first bad one by name is
  // reported.
  std::vector<const std::string*> names;
  for (const auto& entry : options.fixed) names.push_back(&entry.first);
  std::sort(names.begin(), names.end(), [](const std::string* a, const std::string* b) { return *a < *b; });
  for (const std::string* name : names) {
    THALWEG_RETURN_IF_ERROR(
        NamedDevice(devices, options.fixed.at(*name), absl::StrCat("the placement of node '", *name, "'")).status());
  }
  absl::flat_hash_map<const RequestedName*, const Restriction*> by_request;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const std::string* device = graph.node(id).removed ? nullptr : FixedDevice(options, graph.node(id));
    if (device == nullptr) continue;
    const Restriction*& restriction = by_request[devices.Request(*device)];
    if (restriction == nullptr) {
      restriction =
          Add(devices.Request(*device)->matches, "file", absl::StrCat("put on ", *device, " by the placement file"));
    }
    by_node_[id] = restriction;
  }
  return absl::OkStatus();
}

void Restrictions::AddBoundary(const Graph& graph) {
  const Restriction* feed = nullptr;
  const Restriction* fetch = nullptr;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.removed || !IsStepBoundary(node)) continue;
    if (node.schema->role == OpRole::kArg) {
      if (feed == nullptr) feed = Add(DeviceSet().set(0), "feed", "fed tensors arrive on the client device");
      by_node_[id] = feed;
    } else {
      if (fetch == nullptr) fetch = Add(DeviceSet().set(0), "fetch", "fetched tensors leave from the client device");
      by_node_[id] = fetch;
    }
  }
}

}  // namespace thalweg
