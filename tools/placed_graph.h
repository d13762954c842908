// A step of a graph, compiled up to placement and partitioning without a session: what `place` reports.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/graph_view.h"

namespace thalweg::tools {

struct PlacedGraph {
  std::vector<PlacementDevice> devices;
  std::vector<std::string> fetches;
  int64_t loaded_nodes = 0;
  CompiledGraph compiled;
  std::vector<std::vector<std::string>> originals;  // by node of `compiled`: the nodes of the file that it stands for

  const DecisionRecord& record(const Node& node) const {
    return compiled.placement.records[&node - compiled.graph.nodes().data()];
  }
};

// As a session with these options would run a step with these fetches and targets, every placeholder that it needs being
// fed.
absl::StatusOr<PlacedGraph> PlaceView(const GraphView& view, const SessionOptions& options,
                                      const std::vector<std::string>& fetches, const std::vector<std::string>& targets);

}  // namespace thalweg::tools
