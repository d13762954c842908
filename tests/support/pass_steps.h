// Steps of graphs after single passes, for tests of passes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "thalweg/graph/check.h"
#include "thalweg/graph/passes/pass_runner.h"
#include "thalweg/graph/prune.h"

namespace thalweg::testing {

// What is left of the step of `request` after `passes`, each of which must run and leave a sound graph. `reports`, if not null, gets
// one report per pass.
inline PrunedGraph StepAfter(const Graph& loaded, const CompileRequest& request, absl::Span<const Pass> passes,
                             std::vector<PassReport>* reports = nullptr) {
  std::vector<PassReport> own;
  if (reports == nullptr) reports = &own;
  absl::StatusOr<PrunedGraph> step = PrepareAndOptimize(
      [&] { return PruneGraph(loaded, {request.feeds, request.fetches, request.targets}); }, request, passes, reports);
  EXPECT_TRUE(step.ok()) << step.status();
  if (!step.ok()) return PrunedGraph();
  for (const PassReport& report : *reports) EXPECT_EQ(report.error, "") << report.name;
  EXPECT_TRUE(CheckGraph(step->graph).ok());
  return *std::move(step);
}

// "Op(input:0,^control)".
inline std::string OpWithInputs(const Graph& graph, const Node& node) {
  std::vector<std::string> inputs;
  for (Endpoint input : node.inputs) inputs.push_back(graph.EndpointName(input));
  return absl::StrCat(node.op, "(", absl::StrJoin(inputs, ","), ")");
}

}  // namespace thalweg::testing
