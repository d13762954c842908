#include "thalweg/graph/findings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

constexpr size_t kMostPerKind = 1000;
constexpr size_t kMostInStatus = 20;
constexpr size_t kLongestQuoted = 120;

Finding NodeFinding(Finding::Severity severity, const char* kind, const Graph& graph, NodeId node, std::string message,
                    std::string advice) {
  Finding finding;
  finding.severity = severity;
  finding.kind = kind;
  finding.node = std::string(graph.node(node).name);
  finding.op = std::string(graph.node(node).op);
  finding.message = std::move(message);
  finding.advice = std::move(advice);
  finding.node_id = node;
  return finding;
}

int SeverityRank(Finding::Severity severity) {
  switch (severity) {
    case Finding::Severity::kError: return 0;
    case Finding::Severity::kWarning: return 1;
    case Finding::Severity::kNote: return 2;
  }
  return 3;
}

}  // namespace

void FindingList::Error(const char* kind, const Graph& graph, NodeId node, std::string message, std::string advice,
                        absl::StatusCode code) {
  Finding finding = NodeFinding(Finding::Severity::kError, kind, graph, node, std::move(message), std::move(advice));
  finding.code = code;
  Add(std::move(finding));
}

void FindingList::FileError(const char* kind, std::string message, std::string advice, absl::StatusCode code) {
  Finding finding;
  finding.code = code;
  finding.kind = kind;
  finding.message = std::move(message);
  finding.advice = std::move(advice);
  Add(std::move(finding));
}

void FindingList::Warning(const char* kind, const Graph& graph, NodeId node, std::string message, std::string advice) {
  Add(NodeFinding(Finding::Severity::kWarning, kind, graph, node, std::move(message), std::move(advice)));
}

void FindingList::Note(const char* kind, const Graph& graph, NodeId node, std::string message, std::string advice) {
  Add(NodeFinding(Finding::Severity::kNote, kind, graph, node, std::move(message), std::move(advice)));
}

void FindingList::Add(Finding finding) {
  if (finding.severity == Finding::Severity::kError) ++num_errors_;
  if (++counts_[finding.kind] <= kMostPerKind) findings_.push_back(std::move(finding));
}

size_t FindingList::count(absl::string_view kind) const {
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<Finding> FindingList::Take() {
  std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
    return std::make_pair(SeverityRank(a.severity), a.node_id) < std::make_pair(SeverityRank(b.severity), b.node_id);
  });
  for (const auto& [kind, count] : counts_) {
    if (count <= kMostPerKind) continue;
    Finding more;
    more.severity = Finding::Severity::kNote;
    more.kind = kind;
    more.message = absl::StrCat(count - kMostPerKind, " more findings of the kind '", kind, "' are not listed");
    findings_.push_back(std::move(more));
  }
  counts_.clear();
  num_errors_ = 0;
  return std::exchange(findings_, {});
}

absl::Status StatusOfFindings(const std::vector<Finding>& findings) {
  size_t errors = 0;
  const Finding* first = nullptr;
  std::string lines;
  for (const Finding& finding : findings) {
    if (finding.severity != Finding::Severity::kError) continue;
    if (first == nullptr) first = &finding;
    if (++errors > kMostInStatus) continue;
    absl::StrAppend(&lines, "\n  ", finding.message);
    if (!finding.advice.empty()) absl::StrAppend(&lines, "; ", finding.advice);
  }
  if (first == nullptr) return absl::OkStatus();
  if (errors == 1) return absl::Status(first->code, lines.substr(3));
  if (errors > kMostInStatus) absl::StrAppend(&lines, "\n  ... and ", errors - kMostInStatus, " more");
  return absl::Status(first->code, absl::StrCat("the graph has ", errors, " faults:", lines));
}

std::string Quoted(absl::string_view text) {
  if (text.size() <= kLongestQuoted) return absl::StrCat("'", absl::Utf8SafeCHexEscape(text), "'");
  constexpr size_t kHalf = kLongestQuoted / 2;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kHalf)), "...",
                      absl::CHexEscape(text.substr(text.size() - kHalf)), "' (", text.size(), " characters)");
}

std::string NodeLabel(const Node& node) {
  return absl::StrCat("node ", Quoted(node.name), " (", absl::CHexEscape(node.op.substr(0, 120)), ")");
}

}  // namespace thalweg
