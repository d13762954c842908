#include "thalweg/graph/passes/fuse_elementwise.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

constexpr char kFusedOp[] = "_FusedElementwise";

// What the kernel takes.
constexpr size_t kMostNodes = 16;
constexpr size_t kMostArgs = 8;

// Shorter rows of a broadcast operand are cheaper to expand by the op itself.
constexpr int64_t kShortestRow = 16;

bool IsFusible(absl::string_view op) {
  static const auto& ops = *new absl::flat_hash_set<absl::string_view>(FusibleElementwiseOps().begin(), FusibleElementwiseOps().end());
  return ops.contains(op);
}

class ElementwiseFuser {
 public:
  ElementwiseFuser(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), consumers_(graph.BuildConsumers()), group_of_(graph.num_nodes(), kNoNode) {}

  absl::StatusOr<bool> Run() {
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    position_.assign(graph_.num_nodes(), 0);
    for (size_t i = 0; i < order.size(); ++i) position_[order[i]] = static_cast<int32_t>(i);
    // Readers first, so that a group starts at its last node.
    std::vector<Group> groups;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (group_of_[*it] != kNoNode || !MayEnd(*it)) continue;
      Group group = Grow(*it);
      if (group.nodes.size() > 1) groups.push_back(std::move(group));
      else group_of_[*it] = kNoNode;
    }
    bool changed = false;
    for (const Group& group : groups) changed |= Replace(group);
    return changed;
  }

 private:
  struct Group {
    std::vector<NodeId> nodes;   // the first one found is the last to run
    std::vector<Endpoint> args;  // what they read from outside
    NodeId last() const { return nodes.front(); }
  };

  bool MayEnd(NodeId id) const {
    const Node& node = graph_.node(id);
    if (!IsFusible(node.op) || !IsPure(graph_, node) || !node.control_inputs().empty() || context_.preserve.contains(id)) return false;
    if (node.output_types[0] != DType::kFloat32 && node.output_types[0] != DType::kFloat64) return false;
    if (context_.request->devices.size() > 1 && node.attrs.Find("_class") != nullptr) return false;
    return IsTold(context_.shapes->Of({id, 0})) && std::all_of(node.inputs.begin(), node.inputs.end(), [&](Endpoint input) {
      return SuitsAsArg(input, {id, 0});
    });
  }

  // Whether the shape tells all dimensions apart, known or not.
  static bool IsTold(const PartialShape* shape) {
    return shape != nullptr && shape->has_rank() &&
           std::none_of(shape->dims().begin(), shape->dims().end(), [](int64_t d) { return d == kUnknownDim; });
  }

  bool SuitsAsArg(Endpoint arg, Endpoint result) const {
    const PartialShape* a = context_.shapes->Of(arg);
    const PartialShape* r = context_.shapes->Of(result);
    if (!IsTold(a) || a->rank() > r->rank()) return false;
    if (*a == *r) return true;
    // Lined up at the right: first dimensions that are equal (or 1 in both) or that the operand lacks, then the others.
    const int lacking = r->rank() - a->rank();
    const auto is_spread = [&](int d) { return d < lacking || (a->dim(d - lacking) == 1 && r->dim(d) != 1); };
    for (int d = lacking; d < r->rank(); ++d) {
      if (!is_spread(d) && a->dim(d - lacking) != r->dim(d)) return false;
    }
    if (a->IsFullyKnown() && a->NumElementsOrUnknown() == 1) return true;
    // The innermost dimensions that are all spread or all not make up a row.
    int64_t row = 1;
    for (int d = r->rank() - 1; d >= 0 && is_spread(d) == is_spread(r->rank() - 1); --d) {
      if (!IsKnownDim(r->dim(d))) return true;  // unknown sizes are taken for long ones
      row *= r->dim(d);
      if (row >= kShortestRow) return true;
    }
    return false;
  }

  bool MayJoin(NodeId id, const Group& group) const {
    const NodeId last = group.last();
    if (group_of_[id] != kNoNode || !MayEnd(id)) return false;
    const Node& node = graph_.node(id);
    if (node.output_types[0] != graph_.node(last).output_types[0] || node.requested_device != graph_.node(last).requested_device) return false;
    if (*context_.shapes->Of({id, 0}) != *context_.shapes->Of({last, 0})) return false;
    const absl::Span<const Consumers::Use> uses = consumers_.of(id);
    return std::all_of(uses.begin(), uses.end(), [&](const Consumers::Use& use) {
      return use.port == 0 && group_of_[use.node] == last;
    });
  }

  Group Grow(NodeId last) {
    Group group;
    Take(last, &group);
    // A node can join once all its readers have: look again at those that could not when another one has joined.
    for (bool grown = true; grown && group.nodes.size() < kMostNodes;) {
      grown = false;
      for (size_t i = 0; i < group.args.size() && group.nodes.size() < kMostNodes; ++i) {
        const NodeId producer = group.args[i].node;
        if (!MayJoin(producer, group) || ArgsWith(group, producer) > kMostArgs) continue;
        group.args.erase(group.args.begin() + static_cast<int64_t>(i--));
        Take(producer, &group);
        grown = true;
      }
    }
    return group;
  }

  void Take(NodeId id, Group* group) {
    group->nodes.push_back(id);
    group_of_[id] = group->last();
    for (Endpoint input : graph_.node(id).inputs) {
      if (group_of_[input.node] == group->last()) continue;
      if (std::find(group->args.begin(), group->args.end(), input) == group->args.end()) group->args.push_back(input);
    }
  }

  size_t ArgsWith(const Group& group, NodeId joining) const {
    size_t args = group.args.size() - 1;  // without the joining node's result
    const NodeInputs& inputs = graph_.node(joining).inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_new = std::find(group.args.begin(), group.args.end(), inputs[i]) == group.args.end() &&
                          std::find(inputs.begin(), inputs.begin() + static_cast<int64_t>(i), inputs[i]) == inputs.begin() + static_cast<int64_t>(i);
      args += is_new ? 1 : 0;
    }
    return args;
  }

  // No device that could run a part of the group may be lost.
  bool SomeDeviceLoses(const Group& group, const Node& fused) const {
    if (context_.request->kernels == nullptr) return false;
    return std::any_of(context_.request->devices.begin(), context_.request->devices.end(), [&](const PlacementDevice& device) {
      if (context_.request->kernels->CanRun(fused, device.backend).ok()) return false;
      return std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) {
        return context_.request->kernels->CanRun(graph_.node(id), device.backend).ok();
      });
    });
  }

  bool Replace(const Group& group) {
    std::vector<NodeId> steps = group.nodes;
    std::sort(steps.begin(), steps.end(), [&](NodeId a, NodeId b) { return position_[a] < position_[b]; });
    std::vector<std::string> ops;
    std::vector<int64_t> operands;
    std::vector<float> alphas;
    for (NodeId id : steps) {
      const Node& node = graph_.node(id);
      ops.emplace_back(node.op);
      alphas.push_back(node.node_attrs().GetOr<float>("alpha", 0.0f));
      for (Endpoint input : node.inputs) {
        const auto arg = std::find(group.args.begin(), group.args.end(), input);
        const auto step = std::find(steps.begin(), steps.end(), input.node);
        operands.push_back(step != steps.end() ? -1 - (step - steps.begin()) : arg - group.args.begin());
      }
    }
    Node fused = graph_.node(group.last());
    fused.op = graph_.Intern(kFusedOp);
    fused.schema = graph_.schemas->Find(kFusedOp);
    fused.inputs.assign(group.args.begin(), group.args.end());
    fused.num_data_inputs = static_cast<int32_t>(group.args.size());
    AttrMap attrs;
    attrs.Set("T", fused.output_types[0]);
    attrs.Set("num_args", static_cast<int64_t>(group.args.size()));
    attrs.Set("ops", MakeListAttr(std::move(ops)));
    attrs.Set("operands", MakeListAttr(std::move(operands)));
    attrs.Set("alphas", MakeListAttr(std::move(alphas)));
    fused.attrs = std::move(attrs);
    if (SomeDeviceLoses(group, fused)) return false;
    for (NodeId id : group.nodes) {
      if (id == group.last()) continue;
      Absorb(fused, graph_.node(id));
      graph_.RemoveNode(id);
    }
    graph_.mutable_node(group.last()) = std::move(fused);
    return true;
  }

  Graph& graph_;
  const PassContext& context_;
  const Consumers consumers_;       // of the graph before any change
  std::vector<int32_t> position_;   // by node, in topological order
  std::vector<NodeId> group_of_;    // by node: the last node of its group, kNoNode for none
};

}  // namespace

absl::Span<const absl::string_view> FusibleElementwiseOps() {
  static constexpr absl::string_view kOps[] = {
      "Abs",     "Add",   "AddV2",     "Ceil",       "Cos",  "Div",   "Elu",     "Erf",      "Exp",     "Expm1",   "Floor",
      "Log",     "Log1p", "LeakyRelu", "Maximum",    "Mul",  "Minimum", "Neg",   "RealDiv",  "Reciprocal", "Relu", "Relu6",
      "Rint",    "Round", "Rsqrt",     "Selu",       "Sigmoid", "Sign", "Sin",   "Softplus", "Softsign", "Sqrt",   "Square",
      "SquaredDifference", "Sub", "Tanh"};
  return kOps;
}

absl::StatusOr<bool> FuseElementwise(Graph& graph, const PassContext& context) {
  if (graph.schemas == nullptr || graph.schemas->Find(kFusedOp) == nullptr) return false;
  return ElementwiseFuser(graph, context).Run();
}

}  // namespace thalweg
