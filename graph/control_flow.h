// Static frames: which loop each node runs in.
//
// Pure analysis, no state. Tables follow the executor's view (A10): an Enter runs in the frame around the loop, what reads it
// inside; an Exit runs inside, what reads it around it. A frame is identified by its parent and name, so one name may occur in
// several parents, and two loops of one name in one parent share a frame (I4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

inline constexpr int32_t kRootFrame = 0;

struct StaticFrame {
  std::string name;               // "" for the root
  int32_t parent = -1;            // -1 for the root
  int32_t depth = 0;
  int64_t parallel_iterations = 1;  // of the first Enter (A11, I13)
  std::vector<NodeId> enters;
  std::vector<NodeId> exits;
};

struct ControlFlow {
  std::vector<StaticFrame> frames;  // [0] is the root; parents come before children
  std::vector<int32_t> frame_of;    // by node: where it executes; kRootFrame for removed nodes

  bool has_loops() const { return frames.size() > 1; }
  // Where the readers of `id` execute, next iteration or not.
  int32_t OutputFrame(const Node& node, NodeId id) const;

  std::vector<int32_t> child_of_enter;  // by node: the frame an Enter leads into, -1 for other nodes
};

// True if the node has that role (false for calls of functions).
bool HasRole(const Node& node, OpRole role);
// True if the node's one output is its one input: Identity and its like, LoopCond.
bool HandsInputOn(const Node& node);

// InvalidArgument, naming both nodes and frames and what is missing, for an edge between frames that is neither Enter nor Exit,
// an Enter without frame name or with parallel_iterations below 1, and a NextIteration outside any loop. Requires resolved
// schemas and an acyclic graph but for loop back edges.
absl::StatusOr<ControlFlow> AnalyzeControlFlow(const Graph& graph);

struct FrameFault {
  NodeId node;
  absl::Status status;
};

// Every fault of that kind, for reports. A step refuses only those that it would run into (H16).
std::vector<FrameFault> FrameFaults(const Graph& graph);

}  // namespace thalweg
