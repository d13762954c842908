#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {
namespace {

std::string InputTypes(const Graph& graph, const Node& node) {
  std::vector<std::string> types;
  for (Endpoint input : node.data_inputs()) types.push_back(DTypeName(graph.node(input.node).output_types[input.port]));
  return absl::StrJoin(types, ", ");
}

std::string OutputTypes(const Node& node) {
  return absl::StrJoin(node.output_types, ", ",
                       [](std::string* out, DType type) { absl::StrAppend(out, DTypeName(type)); });
}

// What would let the node have the device that `fact` takes away.
std::string WouldChange(const CandidateFact& fact, const std::string& device) {
  const absl::string_view rule = fact.rule;
  if (rule == "C3") return absl::StrCat(device, ": a kernel for these types there, or other types");
  if (rule == "C13") return absl::StrCat(device, ": no device request, or another one");
  if (rule == "C11") return absl::StrCat(device, ": another request for the state that it uses");
  if (rule == "pin") return absl::StrCat(device, ": no --pin that matches it");
  if (rule == "file") return absl::StrCat(device, ": another entry in the placement file");
  if (rule == "C21") return absl::StrCat(device, ": a new session");
  return "";
}

}  // namespace

std::string PlacementReason(const Graph& graph, const DecisionRecord& record) {
  const absl::string_view rule = record.rule;
  const std::string other =
      record.follows == kNoNode ? "another node" : absl::StrCat("'", graph.node(record.follows).name, "'");
  const auto feasible = std::count_if(record.candidates->begin(), record.candidates->end(),
                                      [](const CandidateFact& fact) { return fact.feasible; });
  if (rule == "C6") return absl::StrCat("shares a device with ", other);
  if (rule == "C10") return absl::StrCat("reads a reference of ", other);
  if (rule == "C15") return "soft placement: the request cannot be met";
  if (rule == "C17") return absl::StrCat("made where its only consumers are (", other, ")");
  if (rule == "C18") return absl::StrCat("looks at the shape of ", other, " only");
  if (rule == "B3") return absl::StrCat("control flow goes with ", other);
  if (rule == "B11" || rule == "B10") return absl::StrCat("carries ", other);
  if (rule == "C21") return "its state lives there";
  if (rule == "pin") return "pinned";
  if (rule == "file") return "as the placement file says";
  if (rule == "feed") return "fed tensors arrive on the client device";
  if (rule == "fetch") return "fetched tensors leave from the client device";
  if (rule == "scatter") return "random choice of the policy scatter";
  if (feasible == 1) return "only candidate";
  return "first of the candidates in order of preference";
}

std::string ExplainPlacement(const Graph& graph, const Placement& placement, absl::Span<const PlacementDevice> devices,
                             NodeId id) {
  const Node& node = graph.node(id);
  const DecisionRecord& record = placement.records[id];
  std::string text =
      absl::StrCat(node.name, "  ", node.op, "  ", InputTypes(graph, node), " -> ", OutputTypes(node), "   requested ",
                   node.requested_device.empty() ? "-" : node.requested_device, "   assigned ",
                   record.device < 0 ? "-" : devices[record.device].name.ToShortString(), "\n");
  if (record.device < 0 || record.candidates == nullptr) return text;
  std::vector<std::string> changes;
  for (const CandidateFact& fact : *record.candidates) {
    const std::string device = devices[fact.device].name.ToShortString();
    const char* verdict = fact.device == record.device ? "chosen" : fact.feasible ? "possible" : "rejected";
    std::string why;
    if (fact.device == record.device) why = absl::StrCat(record.rule, " ", PlacementReason(graph, record));
    if (!fact.fact.empty()) absl::StrAppend(&why, why.empty() ? "" : "; ", fact.rule, " ", fact.fact);
    if (fact.source != kNoNode && fact.source != id)
      absl::StrAppend(&why, " (of '", graph.node(fact.source).name, "')");
    absl::StrAppend(&text, absl::StrFormat("  %-6s %-9s %s\n", device, verdict, why));
    if (!fact.feasible) {
      std::string change = WouldChange(fact, device);
      if (!change.empty()) changes.push_back(std::move(change));
    }
  }
  if (record.group != kNoNode && record.group != id) {
    absl::StrAppend(&text, "  group   of '", graph.node(record.group).name, "'\n");
  }
  if (!changes.empty()) absl::StrAppend(&text, "  would change   ", absl::StrJoin(changes, "; "), "\n");
  return text;
}

}  // namespace thalweg
