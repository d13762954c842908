#include "thalweg/runtime/dead_cause.h"

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

class Walk {
 public:
  Walk(const Plan& plan, absl::FunctionRef<bool(NodeId)> is_dead, absl::FunctionRef<int64_t(NodeId)> iteration_of)
      : plan_(plan), graph_(plan.compiled->graph), frames_(plan.compiled->control_flow), is_dead_(is_dead), iteration_of_(iteration_of) {}

  std::string From(NodeId id) {
    for (int step = 0; step < graph_.num_nodes(); ++step) {
      const NodeId next = DeadProducer(id);
      if (next == kNoNode) return Cause(id);
      id = next;
    }
    return "";
  }

 private:
  // Edges that close loops are not followed: what came from the iteration before was live.
  NodeId DeadProducer(NodeId id) const {
    const Node& node = graph_.node(id);
    for (Endpoint input : node.inputs) {
      if (!HasRole(graph_.node(input.node), OpRole::kNextIteration) && is_dead_(input.node)) return input.node;
    }
    return kNoNode;
  }

  // All producers have run, so one of them left empty what this node reads.
  std::string Cause(NodeId id) const {
    const Node& node = graph_.node(id);
    for (Endpoint input : node.data_inputs()) {
      const Node& producer = graph_.node(input.node);
      if (HasRole(producer, OpRole::kSwitch)) return SwitchCause(input);
      if (HasRole(producer, OpRole::kExit)) {
        return absl::StrCat("the loop in frame '", frames_.frames[frames_.frame_of[input.node]].name, "' ended without a value for '", producer.name, "'");
      }
    }
    return absl::StrCat("'", node.name, "' (", node.op, ") did not run", Where(id));
  }

  std::string SwitchCause(Endpoint output) const {
    const Node& node = graph_.node(output.node);
    std::string choice = "chose another output";
    if (node.num_outputs() == 2) choice = absl::StrCat("had the predicate ", output.port == 1 ? "false" : "true");
    return absl::StrCat("'", node.name, "' (", node.op, ") ", choice, " (", NameOf(node.inputs[1]), ")", Where(output.node),
                        ", so its output ", output.port, " has no value");
  }

  // As the user knows it: what is fed has a node of the plan's own, and what comes from another device one that receives it.
  std::string NameOf(Endpoint e) const {
    if (HasRole(graph_.node(e.node), OpRole::kRecv)) e = plan_.compiled->transfers[graph_.node(e.node).node_attrs().GetOr<int32_t>("pair", 0)].source;
    const Node& node = graph_.node(e.node);
    if (!HasRole(node, OpRole::kArg)) return graph_.EndpointName(e);
    const auto feed = static_cast<size_t>(node.node_attrs().GetOr<int32_t>("index", 0));
    return feed < plan_.feed_names.size() ? plan_.feed_names[feed] : graph_.EndpointName(e);
  }

  std::string Where(NodeId id) const {
    const int32_t frame = frames_.frame_of[id];
    if (frame == kRootFrame) return "";
    return absl::StrCat(" in iteration ", iteration_of_(id), " of frame '", frames_.frames[frame].name, "'");
  }

  const Plan& plan_;
  const Graph& graph_;
  const ControlFlow& frames_;
  const absl::FunctionRef<bool(NodeId)> is_dead_;
  const absl::FunctionRef<int64_t(NodeId)> iteration_of_;
};

}  // namespace

std::string ExplainDeadness(const Plan& plan, NodeId id, absl::FunctionRef<bool(NodeId)> is_dead,
                            absl::FunctionRef<int64_t(NodeId)> iteration_of) {
  return Walk(plan, is_dead, iteration_of).From(id);
}

}  // namespace thalweg
