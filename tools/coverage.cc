#include "thalweg/tools/coverage.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/functions.h"
#include "thalweg/graph/loader.h"
#include "thalweg/graph/lowering/lower_functions.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/runtime/kernel_services.h"

namespace thalweg::tools {
namespace {

void Count(const Node& node, const KernelCatalog& catalog, OpCoverage* row) {
  ++row->nodes;
  for (const std::string& backend : Backends()) {
    // Functional form becomes other nodes before anything runs.
    const absl::Status status = IsOfFunctionalForm(node) ? absl::OkStatus() : catalog.CanRun(node, backend);
    row->runnable[backend] += status.ok();
    if (backend != "cpu" || status.ok() || !row->first_missing.empty()) continue;
    row->first_missing_node = std::string(node.name);
    row->first_missing = std::string(status.message());
  }
}

}  // namespace

const std::vector<std::string>& Backends() {
  static const auto* const backends = new std::vector<std::string>{"cpu", "sim"};
  return *backends;
}

std::vector<OpCoverage> CoverageOfGraph(const Graph& graph) {
  const std::unique_ptr<KernelCatalog> catalog = MakeKernelCatalog(BuiltinOps());
  std::map<std::string, OpCoverage> by_op;
  for (const Node& node : graph.nodes()) {
    OpCoverage& row = by_op[std::string(node.op)];
    row.op = std::string(node.op);
    row.is_function =
        node.schema == nullptr || (graph.functions != nullptr && graph.functions->Find(node.op) != nullptr);
    row.known = node.schema != nullptr || row.is_function;
    if (row.is_function) ++row.nodes;
    else Count(node, *catalog, &row);
  }
  std::vector<OpCoverage> rows;
  for (auto& [op, row] : by_op) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const OpCoverage& a, const OpCoverage& b) { return a.nodes > b.nodes; });
  return rows;
}

absl::StatusOr<std::vector<OpCoverage>> CoverageOfFile(const std::string& path) {
  LoadOptions options;
  options.schemas = &BuiltinOps().schemas;
  THALWEG_ASSIGN_OR_RETURN(const LoadResult loaded, LoadGraphFile(path, options));
  if (!loaded.has_errors()) return CoverageOfGraph(loaded.graph);
  // The graph cannot be used; what is known of it are the ops that are not.
  std::map<std::string, OpCoverage> unknown;
  for (const Finding& finding : loaded.findings) {
    if (finding.kind != "unknown op") continue;
    OpCoverage& row = unknown[finding.op];
    row.op = finding.op;
    ++row.nodes;
    if (row.first_missing_node.empty()) row.first_missing_node = finding.node;
    row.first_missing = "unknown op";
  }
  if (unknown.empty()) return loaded.status();
  std::vector<OpCoverage> rows;
  for (auto& [op, row] : unknown) rows.push_back(std::move(row));
  return rows;
}

}  // namespace thalweg::tools
