// What `inspect` reports of a graph beyond its summary: loops, and which kernels there are for it.
#pragma once

#include <string>
#include <vector>

#include "thalweg/tools/coverage.h"
#include "thalweg/tools/graph_view.h"

namespace thalweg::tools {

// A loop of v1 control flow: the nodes that run once per iteration.
struct FrameFacts {
  std::string name;
  int depth = 1;  // 1: not inside another loop
  int64_t nodes = 0;
};

struct GraphFacts {
  std::vector<FrameFacts> frames;
  std::vector<OpCoverage> coverage;

  int64_t runnable(const std::string& backend) const;
};

// For a graph without errors.
GraphFacts GatherFacts(const GraphView& view);

// A command that runs the graph: generated inputs with open dimensions set to 1, the likely outputs. "" if it has none.
std::string ExampleRun(const GraphView& view);

}  // namespace thalweg::tools
