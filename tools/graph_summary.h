// The facts of a graph that `inspect` reports, as data: for tables and for --json.
#pragma once

#include <string>
#include <vector>

#include "thalweg/tools/coverage.h"
#include "thalweg/tools/graph_view.h"

namespace thalweg::tools {

// A loop of v1 control flow: the nodes that run once per iteration.
struct FrameFacts {
  std::string name;
  int depth = 1;      // 1: not inside another loop
  int64_t nodes = 0;
};

struct GraphFacts {
  int64_t nodes = 0;
  int64_t edges = 0;        // data and control
  double parameters = 0;    // elements of floating constants and variables
  double constant_bytes = 0;
  std::vector<std::string> functions;
  std::vector<FrameFacts> frames;
  std::vector<NodeId> inputs;
  std::vector<OutputCandidate> outputs;
  std::vector<OpCoverage> coverage;

  int64_t runnable(const std::string& backend) const;
};

// For a graph without errors.
GraphFacts GatherFacts(const GraphView& view);

// A command that runs the graph: generated inputs with open dimensions set to 1, the likely outputs.
std::string ExampleRun(const GraphView& view, const GraphFacts& facts);

}  // namespace thalweg::tools
