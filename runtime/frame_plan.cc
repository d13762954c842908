#include "thalweg/runtime/frame_plan.h"

#include <algorithm>
#include <compare>
#include <optional>
#include <utility>

namespace thalweg {
namespace {

class FramePlanMaker {
 public:
  FramePlanMaker(const FlowGraph& graph, const std::vector<int32_t>& order) : graph_(graph), order_(order), position_(order.size()) {}

  FramePlan Make() {
    for (size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = static_cast<int32_t>(i);
    plan_.nodes.resize(order_.size());
    MakeFrames();
    PassOverIdleNodes();
    for (size_t i = 0; i < order_.size(); ++i) MakeNode(static_cast<int32_t>(i));
    StoreEdges();
    return std::move(plan_);
  }

 private:
  // What activates a node: an output of another one (-1: its control) and, for data of a Merge, through which input.
  struct Arrival {
    int32_t node = 0;
    int32_t output = -1;
    int32_t merge_input = -1;
    auto operator<=>(const Arrival&) const = default;
  };

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
    if (passed_over_[order_[position]]) {
      node.passed_over = true;
      if (const std::optional<Arrival> source = SourceOf({order_[position]})) {
        node.source = position_[source->node];
        node.source_output = source->output;
      }
      return;
    }
    node.local = static_cast<int32_t>(frame.nodes.size());
    frame.nodes.push_back(position);
    node.is_merge = from.role == OpRole::kMerge;
    node.initial = AddEdges(position);
    frame.initial.push_back(node.initial);
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

  // Nodes that hand their input on to readers who have it already, and constants but for those that a Merge takes or that have
  // several controls.
  void PassOverIdleNodes() {
    passed_over_.assign(graph_.nodes.size(), 0);
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const FlowNode& node = graph_.nodes[id];
      const bool may_be = node.role == OpRole::kConstant && (node.controls.empty() || (node.controls.size() == 1 && IsOfOwnIteration(node.controls[0])));
      passed_over_[id] = node.read_through || may_be;
    }
    for (const FlowNode& node : graph_.nodes) {
      if (node.role != OpRole::kMerge) continue;
      for (Endpoint e : node.data) passed_over_[e.node] = 0;
    }
  }

  bool IsOfOwnIteration(int32_t id) const {
    const FlowNode& node = graph_.nodes[id];
    return node.frame == node.output_frame && node.role != OpRole::kExit && node.role != OpRole::kNextIteration;
  }

  // What arrives in place of something from a node that is passed over; nothing if that waits for nothing.
  std::optional<Arrival> SourceOf(Arrival arrival) const {
    while (passed_over_[arrival.node]) {
      const FlowNode& node = graph_.nodes[arrival.node];
      if (node.read_through) arrival = {node.data[0].node, node.data[0].port};
      else if (!node.controls.empty()) arrival = {node.controls[0]};
      else return std::nullopt;
    }
    return arrival;
  }

  std::vector<Arrival> ArrivalsAt(const FlowNode& node) const {
    std::vector<Arrival> arrivals;
    const auto add = [&](Arrival arrival) {
      if (const std::optional<Arrival> source = SourceOf(arrival)) arrivals.push_back(*source);
    };
    const bool is_merge = node.role == OpRole::kMerge;
    for (int32_t control : node.controls) add({control});
    if (!is_merge) {
      for (Endpoint e : node.data) add({e.node, e.port});
    }
    std::sort(arrivals.begin(), arrivals.end());
    arrivals.erase(std::unique(arrivals.begin(), arrivals.end()), arrivals.end());
    // Whatever arrives on an output says what the control edge of its node would say.
    std::vector<Arrival> kept;
    for (size_t i = 0; i < arrivals.size(); ++i) {
      const bool said_by_next = arrivals[i].output < 0 && i + 1 < arrivals.size() && arrivals[i + 1].node == arrivals[i].node;
      if (!said_by_next) kept.push_back(arrivals[i]);
    }
    for (size_t k = 0; is_merge && k < node.data.size(); ++k) kept.push_back({node.data[k].node, node.data[k].port, static_cast<int32_t>(k)});
    return kept;
  }

  // Returns the initial count of the node's counter.
  uint64_t AddEdges(int32_t target) {
    const FrameNode& node = plan_.nodes[target];
    uint64_t count = 0;
    for (const Arrival& arrival : ArrivalsAt(graph_.nodes[order_[target]])) {
      edges_.push_back({position_[arrival.node], {target, node.local, node.is_merge, arrival.output, arrival.merge_input}});
      count += arrival.merge_input < 0 ? 1 : 0;
    }
    return node.is_merge ? 2 * count + 1 : count;
  }

  // By source, each source's in the order of their targets.
  void StoreEdges() {
    std::stable_sort(edges_.begin(), edges_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [source, edge] : edges_) {
      FrameNode& node = plan_.nodes[source];
      if (node.num_edges++ == 0) node.first_edge = static_cast<int32_t>(plan_.edges.size());
      plan_.edges.push_back(edge);
    }
  }

  const FlowGraph& graph_;
  const std::vector<int32_t>& order_;
  std::vector<int32_t> position_;
  std::vector<uint8_t> passed_over_;                        // by graph id
  std::vector<std::pair<int32_t, FrameEdge>> edges_;        // with their sources' positions
  FramePlan plan_;
};

}  // namespace

FramePlan MakeFramePlan(const FlowGraph& graph, const std::vector<int32_t>& order) { return FramePlanMaker(graph, order).Make(); }

}  // namespace thalweg
