#include "thalweg/graph/partition/transfer_cause.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

// What keeps `node` from being on `device`; nullopt if nothing does.
std::optional<std::string> Obstacle(const Graph& graph, const Placement& placement,
                                    absl::Span<const PlacementDevice> devices, NodeId node, int device) {
  const DecisionRecord& record = placement.records[node];
  if (record.candidates == nullptr) return std::nullopt;
  const CandidateFact& fact = (*record.candidates)[device];
  if (fact.feasible) return std::nullopt;
  const Node& source = graph.node(fact.source == kNoNode ? node : fact.source);
  const absl::string_view rule = fact.rule;
  if (rule == "C3") return absl::StrCat("no kernel for ", source.op, " on ", devices[device].backend);
  if (rule == "pin") return absl::StrCat("pinned: ", source.name);
  if (rule == "file") return absl::StrCat("placement file: ", source.name);
  if (rule == "C13") return absl::StrCat("requested device of ", source.name);
  if (rule == "C11" || rule == "C21") return absl::StrCat("state of ", source.name);
  return std::nullopt;
}

}  // namespace

std::string TransferCause(const Graph& graph, const Placement& placement, absl::Span<const PlacementDevice> devices,
                          const Transfer& transfer, NodeId consumer) {
  if (transfer.source_device == transfer.destination_device) {
    return transfer.destination_on_host ? "host memory input" : "host memory output";
  }
  const OpSchema* source = graph.node(transfer.source.node).schema;
  const OpSchema* reader = graph.node(consumer).schema;
  if (source != nullptr && source->role == OpRole::kArg) return "feed";
  if (reader != nullptr && reader->role == OpRole::kRetval) return "fetch";
  if (auto obstacle = Obstacle(graph, placement, devices, consumer, transfer.source_device)) return *obstacle;
  if (auto obstacle = Obstacle(graph, placement, devices, transfer.source.node, transfer.destination_device))
    return *obstacle;
  const DecisionRecord& record = placement.records[consumer];
  if (absl::string_view(record.rule) == "C6" && record.follows != kNoNode) {
    return absl::StrCat("colocated with ", graph.node(record.follows).name);
  }
  return "policy";
}

}  // namespace thalweg
