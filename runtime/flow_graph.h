// FlowGraph: what control flow needs to know of a compiled graph, stripped of names, types and kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "thalweg/graph/control_flow.h"

namespace thalweg {

struct FlowNode {
  OpRole role = OpRole::kNormal;
  int32_t frame = kRootFrame;         // where it executes
  int32_t output_frame = kRootFrame;  // where its readers execute
  std::vector<Endpoint> data;         // a _Recv reads its _Send
  std::vector<int32_t> controls;
  int32_t num_outputs = 0;
  bool is_constant_enter = false;
  bool hands_input_on = false;        // its value is that of data[0]
  bool read_through = false;          // hands its input on, and its readers have that input in place of its output
};

// Node ids are in topological order but for what a NextIteration feeds.
struct FlowGraph {
  std::vector<FlowNode> nodes;
  std::vector<StaticFrame> frames;
};

}  // namespace thalweg
