#include "thalweg/graph/cycles.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

// Strongly connected components over the edges consumer -> producer (Tarjan's algorithm with an explicit stack).
class ComponentFinder {
 public:
  explicit ComponentFinder(const Graph& graph)
      : graph_(graph), order_(graph.num_nodes(), 0), low_(graph.num_nodes(), 0), component_(graph.num_nodes(), -1) {}

  // Component number of every node; -1 for removed nodes.
  std::vector<int32_t> Run() {
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      if (order_[id] == 0 && !graph_.node(id).removed) Explore(id);
    }
    return std::move(component_);
  }

 private:
  struct Frame {
    NodeId node;
    size_t next_input;
  };

  void Explore(NodeId root) {
    Enter(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const Node& node = graph_.node(frame.node);
      if (frame.next_input == node.inputs.size()) {
        Leave();
        continue;
      }
      const NodeId producer = node.inputs[frame.next_input++].node;
      if (producer == kNoNode || graph_.node(producer).removed || IsLoopBackEdge(graph_.node(producer), node)) continue;
      if (order_[producer] == 0) {
        Enter(producer);
      } else if (component_[producer] < 0) {
        low_[frame.node] = std::min(low_[frame.node], order_[producer]);
      }
    }
  }

  void Enter(NodeId id) {
    order_[id] = low_[id] = ++visited_;
    open_.push_back(id);
    frames_.push_back({id, 0});
  }

  void Leave() {
    const NodeId id = frames_.back().node;
    frames_.pop_back();
    if (!frames_.empty()) low_[frames_.back().node] = std::min(low_[frames_.back().node], low_[id]);
    if (low_[id] != order_[id]) return;
    NodeId member;
    do {
      member = open_.back();
      open_.pop_back();
      component_[member] = components_;
    } while (member != id);
    ++components_;
  }

  const Graph& graph_;
  std::vector<int32_t> order_;  // 0: not visited
  std::vector<int32_t> low_;
  std::vector<int32_t> component_;
  std::vector<NodeId> open_;
  std::vector<Frame> frames_;
  int32_t visited_ = 0;
  int32_t components_ = 0;
};

// The first input of `id` inside its own component, or kNoNode.
NodeId ProducerInComponent(const Graph& graph, const std::vector<int32_t>& component, NodeId id) {
  const Node& node = graph.node(id);
  for (const Endpoint input : node.inputs) {
    if (input.node == kNoNode || component[input.node] != component[id]) continue;
    if (!IsLoopBackEdge(graph.node(input.node), node)) return input.node;
  }
  return kNoNode;
}

// Follows producers inside the component from `start` until a node repeats. Every node of a component that has a cycle
// has a producer inside it, so the walk cannot end otherwise.
std::vector<NodeId> WalkCycle(const Graph& graph, const std::vector<int32_t>& component, NodeId start,
                              std::vector<int32_t>* step_of) {
  std::vector<NodeId> walk;
  NodeId id = start;
  while ((*step_of)[id] < 0) {
    (*step_of)[id] = static_cast<int32_t>(walk.size());
    walk.push_back(id);
    id = ProducerInComponent(graph, component, id);
  }
  std::vector<NodeId> cycle(walk.begin() + (*step_of)[id], walk.end());
  std::reverse(cycle.begin(), cycle.end());  // the walk went against the edges
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

}  // namespace

std::vector<std::vector<NodeId>> FindCycles(const Graph& graph) {
  const std::vector<int32_t> component = ComponentFinder(graph).Run();
  std::vector<bool> seen(graph.num_nodes(), false);  // by component
  std::vector<int32_t> step_of(graph.num_nodes(), -1);
  std::vector<std::vector<NodeId>> cycles;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (component[id] < 0 || seen[component[id]]) continue;
    seen[component[id]] = true;
    if (ProducerInComponent(graph, component, id) == kNoNode) continue;
    cycles.push_back(WalkCycle(graph, component, id, &step_of));
  }
  std::sort(cycles.begin(), cycles.end());
  return cycles;
}

std::string CycleToString(const Graph& graph, const std::vector<NodeId>& cycle, size_t limit) {
  std::string text;
  const size_t half = std::max<size_t>(limit / 2, 1);
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (cycle.size() > limit && i == half) {
      const size_t skipped = cycle.size() - 2 * half;
      absl::StrAppend(&text, "... (", skipped, " more) -> ");
      i += skipped;
    }
    absl::StrAppend(&text, graph.node(cycle[i]).name, " -> ");
  }
  if (!cycle.empty()) absl::StrAppend(&text, graph.node(cycle[0]).name);
  return text;
}

}  // namespace thalweg
