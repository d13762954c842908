#include "thalweg/graph/control_flow.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/findings.h"

namespace thalweg {
namespace {

class FrameAnalysis {
 public:
  explicit FrameAnalysis(const Graph& graph) : graph_(graph) {}

  absl::StatusOr<ControlFlow> Run() {
    Prepare();
    if (!HasFrames()) return std::move(result_);
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    for (NodeId id : order) THALWEG_RETURN_IF_ERROR(Visit(id));
    for (NodeId id : order) THALWEG_RETURN_IF_ERROR(CheckBackEdges(id));
    return std::move(result_);
  }

  // Goes on after a fault. What reads a node whose frame is not known is not judged: each fault is reported once.
  std::vector<FrameFault> AllFaults() {
    Prepare();
    std::vector<FrameFault> faults;
    const absl::StatusOr<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!HasFrames() || !order.ok()) return faults;
    std::vector<bool> unknown(graph_.num_nodes());
    const auto judge = [&](NodeId id, auto check, bool back_edges) {
      const Node& node = graph_.node(id);
      bool judged = !unknown[id];
      for (Endpoint input : node.inputs) {
        if (back_edges || !IsLoopBackEdge(graph_.node(input.node), node)) judged = judged && !unknown[input.node];
      }
      absl::Status status = judged ? check(id) : absl::OkStatus();
      unknown[id] = !judged || !status.ok();
      if (!status.ok()) faults.push_back({id, std::move(status)});
    };
    for (NodeId id : *order) judge(id, [this](NodeId node) { return Visit(node); }, /*back_edges=*/false);
    for (NodeId id : *order) judge(id, [this](NodeId node) { return CheckBackEdges(node); }, /*back_edges=*/true);
    return faults;
  }

 private:
  void Prepare() {
    result_.frames.resize(1);
    result_.frame_of.assign(graph_.num_nodes(), kRootFrame);
    result_.child_of_enter.assign(graph_.num_nodes(), -1);
  }

  bool HasFrames() const {
    for (const Node& node : graph_.nodes()) {
      if (!node.removed && (HasRole(node, OpRole::kEnter) || HasRole(node, OpRole::kNextIteration))) return true;
    }
    return false;
  }

  absl::Status Visit(NodeId id) {
    const Node& node = graph_.node(id);
    NodeId first = kNoNode;
    for (Endpoint input : node.inputs) {
      const Node& producer = graph_.node(input.node);
      if (IsLoopBackEdge(producer, node)) continue;
      if (first == kNoNode) {
        first = input.node;
        result_.frame_of[id] = OutputFrame(input.node);
      } else if (OutputFrame(input.node) != result_.frame_of[id]) {
        return DifferentFrames(id, first, input.node);
      }
    }
    if (HasRole(node, OpRole::kEnter)) return VisitEnter(id);
    const int32_t frame = result_.frame_of[id];
    if (HasRole(node, OpRole::kExit)) result_.frames[frame].exits.push_back(id);
    if (HasRole(node, OpRole::kNextIteration) && frame == kRootFrame) {
      return absl::InvalidArgumentError(absl::StrCat(NodeLabel(node), " is outside of any loop: no Enter leads to it"));
    }
    return absl::OkStatus();
  }

  absl::Status VisitEnter(NodeId id) {
    const Node& node = graph_.node(id);
    const std::string name = node.node_attrs().GetOr<std::string>("frame_name", "");
    if (name.empty()) return absl::InvalidArgumentError(absl::StrCat(NodeLabel(node), " must have a frame_name"));
    const int64_t parallel = node.node_attrs().GetOr<int64_t>("parallel_iterations", 10);
    if (parallel < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(node), ": parallel_iterations is ", parallel, " but must be at least 1"));
    }
    const int32_t parent = result_.frame_of[id];
    const auto [it, added] = frames_.try_emplace({parent, name}, static_cast<int32_t>(result_.frames.size()));
    if (added) {
      StaticFrame frame;
      frame.name = name;
      frame.parent = parent;
      frame.depth = result_.frames[parent].depth + 1;
      frame.parallel_iterations = parallel;
      result_.frames.push_back(std::move(frame));
    }
    result_.frames[it->second].enters.push_back(id);
    result_.child_of_enter[id] = it->second;
    return absl::OkStatus();
  }

  absl::Status CheckBackEdges(NodeId id) const {
    const Node& node = graph_.node(id);
    for (Endpoint input : node.inputs) {
      if (!IsLoopBackEdge(graph_.node(input.node), node) || OutputFrame(input.node) == result_.frame_of[id]) continue;
      return absl::InvalidArgumentError(absl::StrCat(NodeLabel(node), " in ", FrameText(result_.frame_of[id]),
                                                     " takes the next iteration of ",
                                                     NodeLabel(graph_.node(input.node)), " in ",
                                                     FrameText(OutputFrame(input.node)), "; both must be in one loop"));
    }
    return absl::OkStatus();
  }

  int32_t OutputFrame(NodeId id) const { return result_.OutputFrame(graph_.node(id), id); }

  std::string FrameText(int32_t frame) const {
    return frame == kRootFrame ? "no loop" : absl::StrCat("frame '", result_.frames[frame].name, "'");
  }

  absl::Status DifferentFrames(NodeId id, NodeId first, NodeId second) const {
    const int32_t a = OutputFrame(first);
    const int32_t b = OutputFrame(second);
    const bool b_is_inside = IsInside(b, a);
    const NodeId outer = b_is_inside ? first : second;
    const NodeId inner = b_is_inside ? second : first;
    std::string advice;
    if (IsInside(b, a) || IsInside(a, b)) {
      advice = absl::StrCat("; either an Enter into ", FrameText(OutputFrame(inner)), " is missing behind '",
                            graph_.node(outer).name, "', or an Exit behind '", graph_.node(inner).name, "'");
    } else {
      advice = "; an Exit out of each of the two loops is missing";
    }
    return absl::InvalidArgumentError(absl::StrCat(NodeLabel(graph_.node(id)), " has inputs from different frames: ",
                                                   NodeLabel(graph_.node(first)), " is in ", FrameText(a), ", ",
                                                   NodeLabel(graph_.node(second)), " is in ", FrameText(b), advice));
  }

  bool IsInside(int32_t frame, int32_t other) const {
    while (frame >= 0 && frame != other) frame = result_.frames[frame].parent;
    return frame == other;
  }

  const Graph& graph_;
  ControlFlow result_;
  absl::flat_hash_map<std::pair<int32_t, std::string>, int32_t> frames_;
};

}  // namespace

bool HasRole(const Node& node, OpRole role) { return node.schema != nullptr && node.schema->role == role; }

bool HandsInputOn(const Node& node) {
  static const auto& ops = *new absl::flat_hash_set<absl::string_view>{"Identity", "StopGradient", "PreventGradient",
                                                                       "Snapshot", "LoopCond"};
  return node.num_data_inputs == 1 && ops.contains(node.op);
}

int32_t ControlFlow::OutputFrame(const Node& node, NodeId id) const {
  if (child_of_enter[id] >= 0) return child_of_enter[id];
  const int32_t frame = frame_of[id];
  // An Exit outside of any loop merely hands its input on.
  return HasRole(node, OpRole::kExit) && frame != kRootFrame ? frames[frame].parent : frame;
}

absl::StatusOr<ControlFlow> AnalyzeControlFlow(const Graph& graph) { return FrameAnalysis(graph).Run(); }

std::vector<FrameFault> FrameFaults(const Graph& graph) { return FrameAnalysis(graph).AllFaults(); }

}  // namespace thalweg
