#include "thalweg/graph/passes/pass_runner.h"

#include <chrono>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "thalweg/graph/check.h"
#include "thalweg/graph/placement/restrictions.h"

namespace thalweg {
namespace {

int CountLive(const Graph& graph) {
  int live = 0;
  for (const Node& node : graph.nodes()) live += node.removed ? 0 : 1;
  return live;
}

absl::Status RunOnePass(const Pass& pass, Graph& graph, const PassContext& context, PassReport* report) {
  report->name = pass.name;
  report->nodes_before = CountLive(graph);
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<bool> changed = pass.run(graph, context);
  absl::Status status = changed.ok() && *changed ? CheckGraph(graph) : changed.status();
  report->nanos =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  report->nodes_after = CountLive(graph);
  return status;
}

class PassRun {
 public:
  PassRun(const CompileRequest& request, absl::Span<const Pass> passes) : request_(request), passes_(passes) {}

  // False if a pass failed; it is then remembered and will be left out of the next attempt.
  bool Attempt(PrunedGraph& step, std::vector<PassReport>* reports) {
    reports->clear();
    LazyShapes shapes(step.graph);
    PassContext context;
    context.request = &request_;
    context.preserve = step.preserve;
    for (NodeId pinned : PinnedNodes(step.graph, request_.placement.pins)) context.preserve.insert(pinned);
    context.shapes = &shapes;
    for (const Pass& pass : passes_) {
      if (request_.disabled_passes.contains(pass.name)) continue;
      PassReport report;
      if (auto failed = failed_.find(pass.name); failed != failed_.end()) {
        report.name = pass.name;
        report.error = failed->second;
        report.nodes_before = report.nodes_after = CountLive(step.graph);
      } else if (absl::Status status = RunOnePass(pass, step.graph, context, &report); !status.ok()) {
        failed_.emplace(pass.name, std::string(status.message()));
        return false;
      }
      reports->push_back(std::move(report));
    }
    return true;
  }

 private:
  const CompileRequest& request_;
  const absl::Span<const Pass> passes_;
  absl::flat_hash_map<std::string, std::string> failed_;  // pass -> why
};

}  // namespace

absl::StatusOr<PrunedGraph> PrepareAndOptimize(PrepareStep prepare, const CompileRequest& request,
                                               absl::Span<const Pass> passes, std::vector<PassReport>* reports) {
  PassRun run(request, request.optimize ? passes : absl::Span<const Pass>());
  while (true) {
    THALWEG_ASSIGN_OR_RETURN(PrunedGraph step, prepare());
    if (run.Attempt(step, reports)) return step;
  }
}

}  // namespace thalweg
