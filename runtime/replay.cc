#include "thalweg/runtime/replay.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace thalweg {
namespace {

// Orders the nodes and child frames of one frame, keeping together what has the same guard.
class FrameScheduler {
 public:
  // `items` are node ids, or graph.nodes.size() + frame. `successors` and `missing` are by item.
  FrameScheduler(const std::vector<std::vector<int32_t>>& successors, std::vector<int32_t>& missing, std::function<GuardId(int32_t)> guard_of)
      : successors_(successors), missing_(missing), guard_of_(std::move(guard_of)) {}

  std::vector<int32_t> Order(const std::vector<int32_t>& items) {
    for (int32_t item : items) {
      if (missing_[item] == 0) Offer(item);
    }
    std::vector<int32_t> order;
    order.reserve(items.size());
    GuardId current = kNoGuard;
    for (int32_t item; (item = Next(&current)) >= 0;) {
      order.push_back(item);
      for (int32_t next : successors_[item]) {
        if (--missing_[next] == 0) Offer(next);
      }
    }
    return order;
  }

 private:
  using Queue = std::priority_queue<int32_t, std::vector<int32_t>, std::greater<int32_t>>;

  void Offer(int32_t item) {
    const GuardId guard = guard_of_(item);
    if (static_cast<size_t>(guard) >= ready_.size()) ready_.resize(guard + 1);
    ready_[guard].push(item);
    by_item_.emplace(item, guard);
  }

  // The next item of the current guard; if there is none, the first item of all, whose guard becomes the current one.
  int32_t Next(GuardId* current) {
    if (*current == kNoGuard || ready_[*current].empty()) {
      while (!by_item_.empty() && !IsReady(by_item_.top())) by_item_.pop();
      if (by_item_.empty()) return -1;
      *current = by_item_.top().second;
    }
    const int32_t item = ready_[*current].top();
    ready_[*current].pop();
    return item;
  }

  // Items leave by_item_ late: one is still there if nothing smaller of its guard is waiting and it has not been taken.
  bool IsReady(const std::pair<int32_t, GuardId>& entry) const {
    const Queue& queue = ready_[entry.second];
    return !queue.empty() && queue.top() <= entry.first;
  }

  const std::vector<std::vector<int32_t>>& successors_;
  std::vector<int32_t>& missing_;
  const std::function<GuardId(int32_t)> guard_of_;
  std::vector<Queue> ready_;  // by guard
  std::priority_queue<std::pair<int32_t, GuardId>, std::vector<std::pair<int32_t, GuardId>>, std::greater<>> by_item_;
};

class OrderFinder {
 public:
  OrderFinder(const FlowGraph& graph, const GuardTable& guards)
      : graph_(graph), guards_(guards), num_nodes_(static_cast<int32_t>(graph.nodes.size())) {}

  std::optional<ReplayOrder> Find() {
    const size_t items = num_nodes_ + graph_.frames.size();
    successors_.resize(items);
    missing_.assign(items, 0);
    std::vector<std::vector<int32_t>> members(graph_.frames.size());
    for (int32_t id = 0; id < num_nodes_; ++id) {
      if (!AddEdges(id)) return std::nullopt;
      members[graph_.nodes[id].frame].push_back(id);
    }
    for (size_t f = 1; f < graph_.frames.size(); ++f) members[graph_.frames[f].parent].push_back(ItemOfFrame(f));
    const auto guard_of = [this](int32_t item) { return item < num_nodes_ ? guards_.of_node[item] : guards_.of_block[item - num_nodes_]; };
    for (size_t f = 0; f < graph_.frames.size(); ++f) {
      const std::vector<int32_t> order = FrameScheduler(successors_, missing_, guard_of).Order(members[f]);
      if (order.size() != members[f].size()) return std::nullopt;
      AppendFrame(order);
    }
    return std::move(result_);
  }

 private:
  int32_t ItemOfFrame(size_t frame) const { return num_nodes_ + static_cast<int32_t>(frame); }

  void AddEdge(int32_t from, int32_t to) {
    successors_[from].push_back(to);
    ++missing_[to];
  }

  bool AddEdges(int32_t id) {
    const FlowNode& n = graph_.nodes[id];
    for (Endpoint e : n.data) {
      if (graph_.nodes[e.node].role == OpRole::kNextIteration) {
        if (n.role != OpRole::kMerge) return false;
        AddEdge(id, e.node);  // this iteration's value must be read before the next one's is written
      } else {
        AddForwardEdge(e.node, id);
      }
    }
    for (int32_t control : n.controls) {
      if (graph_.nodes[control].role == OpRole::kNextIteration) return false;
      AddForwardEdge(control, id);
    }
    if (n.role == OpRole::kEnter) AddEdge(id, ItemOfFrame(n.output_frame));
    return true;
  }

  void AddForwardEdge(int32_t from, int32_t to) {
    const FlowNode& producer = graph_.nodes[from];
    if (producer.role == OpRole::kEnter) return;  // ran before the frame began
    if (producer.role == OpRole::kExit && producer.frame != producer.output_frame) AddEdge(ItemOfFrame(producer.frame), to);
    else AddEdge(from, to);
  }

  void AppendFrame(const std::vector<int32_t>& order) {
    ReplayFrame frame;
    frame.runs.begin = static_cast<int32_t>(result_.runs.size());
    bool run_is_open = false;
    for (int32_t item : order) {
      if (item >= num_nodes_) {
        ReplayRun run;
        run.child = item - num_nodes_;
        result_.runs.push_back(run);
        result_.guards.push_back(guards_.of_block[run.child]);
        run_is_open = false;
        continue;
      }
      const int32_t position = static_cast<int32_t>(result_.nodes.size());
      const GuardId guard = guards_.of_node[item];
      if (!run_is_open || result_.guards.back() != guard) {
        ReplayRun run;
        run.nodes = {position, position};
        result_.runs.push_back(run);
        result_.guards.push_back(guard);
        run_is_open = true;
      }
      result_.nodes.push_back(item);
      result_.runs.back().nodes.end = position + 1;
    }
    frame.runs.end = static_cast<int32_t>(result_.runs.size());
    result_.frames.push_back(frame);
  }

  const FlowGraph& graph_;
  const GuardTable& guards_;
  const int32_t num_nodes_;
  std::vector<std::vector<int32_t>> successors_;
  std::vector<int32_t> missing_;
  ReplayOrder result_;
};

}  // namespace

std::optional<ReplayOrder> FindReplayOrder(const FlowGraph& graph, const GuardTable& guards) { return OrderFinder(graph, guards).Find(); }

}  // namespace thalweg
