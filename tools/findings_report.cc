#include "thalweg/tools/findings_report.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/tools/coverage.h"

namespace thalweg::tools {
namespace {

constexpr size_t kOpsPerGroup = 6;
constexpr size_t kPlacesPerOp = 3;
constexpr size_t kMessageCharacters = 300;

const char* SeverityName(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::kError: return "error";
    case Finding::Severity::kWarning: return "warn";
    case Finding::Severity::kNote: return "note";
  }
  return "";
}

Colour SeverityColour(Finding::Severity severity) {
  return severity == Finding::Severity::kError     ? Colour::kRed
         : severity == Finding::Severity::kWarning ? Colour::kYellow
                                                   : Colour::kDim;
}

std::vector<Finding> KernelFindings(const GraphView& view) {
  std::vector<Finding> findings;
  if (view.loaded.has_errors()) return findings;
  for (const OpCoverage& row : CoverageOfGraph(view.graph())) {
    if (row.is_function) continue;
    for (const std::string& backend : Backends()) {
      const int64_t missing = row.nodes - row.runnable.at(backend);
      if (missing == 0) continue;
      Finding finding;
      finding.severity = backend == "cpu" ? Finding::Severity::kWarning : Finding::Severity::kNote;
      finding.kind = absl::StrCat(backend, " has no kernel");
      finding.op = row.op;
      finding.node = backend == "cpu" ? row.first_missing_node : "";
      finding.message = absl::StrCat("no kernel on ", backend, " for ", Plural(missing, "node"), " of op ", row.op,
                                     backend == "cpu" ? absl::StrCat(": ", row.first_missing) : "");
      finding.advice = backend == "cpu" ? "steps that do not need these nodes can run"
                                        : "these nodes stay on the CPU; their values are copied";
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

// Edges between loops that are neither Enter nor Exit, and the like: faults of the steps that need these nodes.
std::vector<Finding> FrameFindings(const GraphView& view) {
  std::vector<Finding> findings;
  if (view.loaded.has_errors()) return findings;
  for (const FrameFault& fault : FrameFaults(view.graph())) {
    Finding finding;
    finding.code = fault.status.code();
    finding.kind = "frame error";
    finding.node = std::string(view.graph().node(fault.node).name);
    finding.op = std::string(view.graph().node(fault.node).op);
    finding.message = std::string(fault.status.message());
    finding.node_id = fault.node;
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> AllFindings(const GraphView& view) {
  std::vector<Finding> all = view.loaded.findings;
  for (Finding& finding : FrameFindings(view)) all.push_back(std::move(finding));
  for (Finding& finding : KernelFindings(view)) all.push_back(std::move(finding));
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return all;
}

struct Group {
  Finding::Severity severity;
  std::string kind;
  std::vector<const Finding*> findings;
};

std::vector<Group> Grouped(const std::vector<Finding>& findings) {
  std::vector<Group> groups;
  for (const Finding& finding : findings) {
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& g) { return g.severity == finding.severity && g.kind == finding.kind; });
    if (found == groups.end()) found = groups.insert(groups.end(), Group{finding.severity, finding.kind, {}});
    found->findings.push_back(&finding);
  }
  return groups;
}

// "DecodeRaw x2 (in/a, in/b)".
std::string PlacesText(const Group& group) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_op;
  for (const Finding* finding : group.findings) {
    auto found =
        std::find_if(by_op.begin(), by_op.end(), [&](const auto& entry) { return entry.first == finding->op; });
    if (found == by_op.end()) found = by_op.insert(by_op.end(), {finding->op, {}});
    found->second.push_back(finding->node);
  }
  std::vector<std::string> texts;
  for (const auto& [op, nodes] : by_op) {
    if (texts.size() == kOpsPerGroup) break;
    const size_t listed = std::min(kPlacesPerOp, nodes.size());
    std::string places = absl::StrJoin(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(listed), ", ");
    if (listed < nodes.size()) places += ", ...";
    const std::string count = nodes.size() > 1 ? absl::StrCat(" x", nodes.size()) : "";
    texts.push_back(absl::StrCat(op, count, places.empty() ? "" : absl::StrCat(" (", places, ")")));
  }
  return absl::StrCat(absl::StrJoin(texts, "  "), by_op.size() > texts.size() ? "  ..." : "");
}

}  // namespace

std::string FindingsText(const GraphView& view, bool all, const Console& console) {
  const std::vector<Finding> findings = AllFindings(view);
  if (findings.empty()) return "ok  nothing to remark\n";
  std::string text;
  for (const Group& group : Grouped(findings)) {
    Table table({Table::Align::kLeft, Table::Align::kLeft});
    const std::string severity = console.Paint(SeverityColour(group.severity), SeverityName(group.severity));
    table.AddRow({severity, absl::StrCat(group.findings.size(), " ", group.kind, "  ", PlacesText(group))});
    const size_t listed = all ? group.findings.size() : 1;
    for (size_t i = 0; i < listed; ++i)
      table.AddRow({"", Ellipsis(group.findings[i]->message, all ? std::string::npos : kMessageCharacters)});
    if (const std::string& advice = group.findings[0]->advice; !advice.empty()) table.AddRow({"", advice});
    absl::StrAppend(&text, table.ToString());
  }
  return text;
}

OrderedJson FindingsJson(const GraphView& view) {
  OrderedJson list = OrderedJson::array();
  for (const Finding& finding : AllFindings(view)) {
    OrderedJson json = {{"severity", SeverityName(finding.severity)}, {"kind", finding.kind}};
    if (finding.severity == Finding::Severity::kError) json["status"] = CodeName(finding.code);
    json["node"] = finding.node;
    json["op"] = finding.op;
    json["message"] = finding.message;
    json["advice"] = finding.advice;
    list.push_back(std::move(json));
  }
  return list;
}

}  // namespace thalweg::tools
