#include "thalweg/runtime/frame_plan.h"

namespace thalweg {
namespace {

uint64_t InitialCount(const FlowNode& node) {
  if (node.role == OpRole::kMerge) return 2 * node.controls.size() + 1;
  return node.data.size() + node.controls.size();
}

class FramePlanMaker {
 public:
  FramePlanMaker(const FlowGraph& graph, const std::vector<int32_t>& order) : graph_(graph), order_(order), position_(order.size()) {}

  FramePlan Make() {
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<int32_t>(i);
    plan_.nodes.resize(order_.size());
    MakeFrames();
    for (size_t i = 0; i < order_.size(); ++i) MakeNode(static_cast<int32_t>(i));
    MakeEdges();
    return std::move(plan_);
  }

 private:
  void MakeFrames() {
    plan_.frames.resize(graph_.frames.size());
    for (size_t f = 0; f < graph_.frames.size(); ++f) {
      const StaticFrame& from = graph_.frames[f];
      FramePlanFrame& frame = plan_.frames[f];
      frame.parent = from.parent;
      frame.window = from.parallel_iterations;
      frame.num_enters = static_cast<int32_t>(from.enters.size());
      if (from.parent >= 0) frame.ordinal = plan_.frames[from.parent].num_children++;
    }
  }

  void MakeNode(int32_t position) {
    const FlowNode& from = graph_.nodes[order_[position]];
    FrameNode& node = plan_.nodes[position];
    FramePlanFrame& frame = plan_.frames[from.frame];
    node.frame = from.frame;
    node.local = static_cast<int32_t>(frame.nodes.size());
    frame.nodes.push_back(position);
    node.initial = InitialCount(from);
    node.is_merge = from.role == OpRole::kMerge;
    node.num_values = node.is_merge ? static_cast<int32_t>(from.data.size()) : 0;
    node.never_dead = from.role == OpRole::kControlTrigger;
    if (from.role == OpRole::kEnter) {
      node.child = from.output_frame;
      node.is_constant_enter = from.is_constant_enter;
    }
    if (from.role == OpRole::kExit) {
      node.exit_ordinal = static_cast<int32_t>(frame.exits.size());
      frame.exits.push_back(position);
    }
    if (node.initial == 0 && from.frame == kRootFrame) plan_.roots.push_back(position);
  }

  void MakeEdges() {
    std::vector<std::vector<FrameEdge>> edges(order_.size());
    for (size_t i = 0; i < order_.size(); ++i) {
      const FlowNode& node = graph_.nodes[order_[i]];
      const bool is_merge = node.role == OpRole::kMerge;
      const int32_t target = static_cast<int32_t>(i);
      for (size_t k = 0; k < node.data.size(); ++k) {
        edges[position_[node.data[k].node]].push_back({target, node.data[k].port, is_merge ? static_cast<int32_t>(k) : -1});
      }
      for (int32_t control : node.controls) edges[position_[control]].push_back({target, -1, -1});
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      plan_.nodes[i].first_edge = static_cast<int32_t>(plan_.edges.size());
      plan_.nodes[i].num_edges = static_cast<int32_t>(edges[i].size());
      plan_.edges.insert(plan_.edges.end(), edges[i].begin(), edges[i].end());
    }
  }

  const FlowGraph& graph_;
  const std::vector<int32_t>& order_;
  std::vector<int32_t> position_;
  FramePlan plan_;
};

}  // namespace

FramePlan MakeFramePlan(const FlowGraph& graph, const std::vector<int32_t>& order) { return FramePlanMaker(graph, order).Make(); }

}  // namespace thalweg
