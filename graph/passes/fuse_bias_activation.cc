#include "thalweg/graph/passes/fuse_bias_activation.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

// What can start a chain.
struct FusibleOp {
  absl::string_view op, fused_op;
  bool is_convolution;
};
constexpr FusibleOp kFusibleOps[] = {{"Conv2D", "_FusedConv2D", true},
                                     {"DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative", true},
                                     {"MatMul", "_FusedMatMul", false}};

const FusibleOp* FindFusibleOp(const Node& node) {
  const auto it =
      std::find_if(std::begin(kFusibleOps), std::end(kFusibleOps), [&](const FusibleOp& f) { return f.op == node.op; });
  return it == std::end(kFusibleOps) ? nullptr : it;
}

bool IsActivation(const Node& node) {
  static constexpr absl::string_view kActivations[] = {"Relu", "Relu6", "Elu", "LeakyRelu", "Sigmoid", "Tanh"};
  return std::find(std::begin(kActivations), std::end(kActivations), node.op) != std::end(kActivations);
}
bool IsAdd(const Node& node) { return node.is("Add") || node.is("AddV2"); }
bool IsBatchNorm(const Node& node) {
  return node.is("FusedBatchNorm") || node.is("FusedBatchNormV2") || node.is("FusedBatchNormV3");
}

std::string DataFormat(const Node& node) { return node.node_attrs().GetOr<std::string>("data_format", "NHWC"); }

// A chain as it grows: its nodes, and what the fused node will be.
struct Chain {
  const FusibleOp* start = nullptr;
  std::vector<NodeId> nodes;  // the last one becomes the fused node
  std::vector<std::string> fused_ops;
  std::vector<Endpoint> args;  // the fused node's inputs after the first two
  float epsilon = 0.0001f;
  float leaky_alpha = 0.2f;

  Endpoint output() const { return {nodes.back(), 0}; }
};

class Fuser {
 public:
  Fuser(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), consumers_(graph.BuildConsumers()), taken_(graph.num_nodes(), false) {}

  absl::StatusOr<bool> Run() {
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    std::vector<Chain> chains;
    for (NodeId id : order) {
      if (!MayStart(id)) continue;
      Chain chain = Grow(id);
      if (chain.nodes.size() < 2) continue;
      for (NodeId node : chain.nodes) taken_[node] = true;
      chains.push_back(std::move(chain));
    }
    bool changed = false;
    for (const Chain& chain : chains) changed |= Replace(chain);
    return changed;
  }

 private:
  bool MayStart(NodeId id) const {
    const Node& node = graph_.node(id);
    const FusibleOp* op = FindFusibleOp(node);
    if (op == nullptr || graph_.schemas == nullptr || graph_.schemas->Find(op->fused_op) == nullptr) return false;
    const DType type = node.output_types[0];
    if (type != DType::kFloat32 && !(op->is_convolution && type == DType::kFloat64)) return false;
    return MayJoin(id) && (!op->is_convolution || DataFormat(node) == "NHWC");
  }

  // Conditions on every node of a chain.
  bool MayJoin(NodeId id) const {
    const Node& node = graph_.node(id);
    if (taken_[id] || !IsPure(graph_, node) || !node.control_inputs().empty()) return false;
    return context_.request->devices.size() <= 1 || node.attrs.Find("_class") == nullptr;
  }

  // Whether `reader`, which reads `node`, may be in one chain with it.
  bool MayFollow(NodeId node, NodeId reader) const {
    if (context_.preserve.contains(reader) || !MayJoin(reader)) return false;
    if (graph_.node(reader).requested_device != graph_.node(node).requested_device) return false;
    return graph_.node(reader).output_types[0] == graph_.node(node).output_types[0];
  }

  // The node that alone reads output 0 of `node`, if it may join; else kNoNode.
  NodeId OnlyReader(NodeId node) const {
    if (context_.preserve.contains(node)) return kNoNode;
    const absl::Span<const Consumers::Use> uses = consumers_.of(node);
    if (uses.size() != 1 || uses[0].port != 0) return kNoNode;
    return MayFollow(node, uses[0].node) ? uses[0].node : kNoNode;
  }
  NodeId OnlyReader(const Chain& chain) const { return OnlyReader(chain.nodes.back()); }

  Chain Grow(NodeId start) const {
    Chain chain;
    chain.start = FindFusibleOp(graph_.node(start));
    chain.nodes.push_back(start);
    if (!TakeBias(chain)) TakeBatchNorm(chain);
    TakeAdd(chain);
    if (!TakeActivation(chain)) TakeSwish(chain);
    return chain;
  }

  // Each Take...() extends the chain by one node if the next one is of that kind.

  bool TakeBias(Chain& chain) const {
    const NodeId id = OnlyReader(chain);
    if (id == kNoNode) return false;
    const Node& node = graph_.node(id);
    Endpoint bias;
    if (node.is("BiasAdd") && DataFormat(node) == "NHWC" && node.inputs[0] == chain.output()) {
      bias = node.inputs[1];
    } else if (IsAdd(node) && IsChannelVector(OtherOperand(node, chain), chain.output())) {
      bias = OtherOperand(node, chain);
    } else {
      return false;
    }
    Take(chain, id, "BiasAdd", {bias});
    return true;
  }

  void TakeBatchNorm(Chain& chain) const {
    const NodeId id = OnlyReader(chain);
    if (id == kNoNode || !chain.start->is_convolution) return;
    const Node& node = graph_.node(id);
    if (!IsBatchNorm(node) || node.node_attrs().GetOr<bool>("is_training", true) || DataFormat(node) != "NHWC") return;
    if (!(node.inputs[0] == chain.output())) return;
    const absl::Span<const Consumers::Use> uses = consumers_.of(id);
    if (std::any_of(uses.begin(), uses.end(), [](const Consumers::Use& use) { return use.port != 0; })) return;
    chain.epsilon = node.node_attrs().GetOr<float>("epsilon", chain.epsilon);
    Take(chain, id, "FusedBatchNorm", {node.inputs[1], node.inputs[2], node.inputs[3], node.inputs[4]});
  }

  void TakeAdd(Chain& chain) const {
    const NodeId id = OnlyReader(chain);
    if (id == kNoNode || !IsAdd(graph_.node(id))) return;
    const Endpoint other = OtherOperand(graph_.node(id), chain);
    if (HaveSameShape(other, chain.output())) Take(chain, id, "Add", {other});
  }

  bool TakeActivation(Chain& chain) const {
    const NodeId id = OnlyReader(chain);
    if (id == kNoNode || !IsActivation(graph_.node(id))) return false;
    const Node& node = graph_.node(id);
    chain.leaky_alpha = node.node_attrs().GetOr<float>("alpha", chain.leaky_alpha);
    Take(chain, id, std::string(node.op), {});
    return true;
  }

  // x * Sigmoid(x): two readers, one of which alone reads the other.
  void TakeSwish(Chain& chain) const {
    const NodeId last = chain.nodes.back();
    const absl::Span<const Consumers::Use> uses = consumers_.of(last);
    if (context_.preserve.contains(last) || uses.size() != 2 || uses[0].port != 0 || uses[1].port != 0) return;
    const bool sigmoid_first = graph_.node(uses[0].node).is("Sigmoid");
    const NodeId sigmoid = uses[sigmoid_first ? 0 : 1].node, product = uses[sigmoid_first ? 1 : 0].node;
    if (!graph_.node(sigmoid).is("Sigmoid") || !graph_.node(product).is("Mul")) return;
    if (!MayFollow(last, sigmoid) || OnlyReader(sigmoid) != product) return;
    chain.nodes.push_back(sigmoid);
    Take(chain, product, "Swish", {});
  }

  static void Take(Chain& chain, NodeId id, std::string fused_op, std::vector<Endpoint> args) {
    chain.nodes.push_back(id);
    chain.fused_ops.push_back(std::move(fused_op));
    chain.args.insert(chain.args.end(), args.begin(), args.end());
  }

  static Endpoint OtherOperand(const Node& add, const Chain& chain) {
    return add.inputs[0] == chain.output() ? add.inputs[1] : add.inputs[0];
  }

  // A vector with as many elements as `value` has channels (columns).
  bool IsChannelVector(Endpoint vector, Endpoint value) const {
    const PartialShape* v = context_.shapes->Of(vector);
    const PartialShape* x = context_.shapes->Of(value);
    if (v == nullptr || x == nullptr || !v->has_rank() || !x->has_rank() || v->rank() != 1 || x->rank() < 2)
      return false;
    return IsKnownDim(v->dim(0)) && v->dim(0) == x->dim(x->rank() - 1);
  }

  // Equal symbols are equal sizes; dimensions of which nothing is known may differ.
  bool HaveSameShape(Endpoint a, Endpoint b) const {
    const PartialShape* x = context_.shapes->Of(a);
    const PartialShape* y = context_.shapes->Of(b);
    if (x == nullptr || y == nullptr || !x->has_rank() || *x != *y) return false;
    return std::none_of(x->dims().begin(), x->dims().end(), [](int64_t d) { return d == kUnknownDim; });
  }

  // No device that could run a part of the chain may be lost.
  bool SomeDeviceLoses(const Chain& chain, const Node& fused) const {
    if (context_.request->kernels == nullptr) return false;
    for (const PlacementDevice& device : context_.request->devices) {
      if (context_.request->kernels->CanRun(fused, device.backend).ok()) continue;
      for (NodeId id : chain.nodes) {
        if (context_.request->kernels->CanRun(graph_.node(id), device.backend).ok()) return true;
      }
    }
    return false;
  }

  // The last node of the chain as the fused one.
  Node MakeFused(const Chain& chain) {
    const Node& start = graph_.node(chain.nodes.front());
    Node fused = graph_.node(chain.nodes.back());
    fused.op = graph_.Intern(chain.start->fused_op);
    fused.schema = graph_.schemas->Find(chain.start->fused_op);
    const DType type = start.output_types[0];
    fused.output_types.assign(1, type);
    fused.inputs.assign({start.inputs[0], start.inputs[1]});
    fused.inputs.insert(fused.inputs.end(), chain.args.begin(), chain.args.end());
    fused.num_data_inputs = static_cast<int32_t>(fused.inputs.size());
    AttrMap attrs;
    for (const auto& [name, value] : start.attrs) {
      if (fused.schema->FindAttr(name) != nullptr) attrs.Set(name, value);
    }
    const int64_t num_args = static_cast<int64_t>(chain.args.size());
    if (fused.schema->FindAttr("TArgs") != nullptr) {
      attrs.Set("TArgs", MakeListAttr(std::vector<DType>(num_args, type)));
      attrs.Set("num_host_args", int64_t{0});
    }
    attrs.Set("num_args", num_args);
    attrs.Set("fused_ops", MakeListAttr(chain.fused_ops));
    attrs.Set("epsilon", chain.epsilon);
    attrs.Set("leakyrelu_alpha", chain.leaky_alpha);
    fused.attrs = std::move(attrs);
    return fused;
  }

  bool Replace(const Chain& chain) {
    Node fused = MakeFused(chain);
    if (SomeDeviceLoses(chain, fused)) return false;
    for (NodeId id : chain.nodes) {
      if (id == chain.nodes.back()) continue;
      Absorb(fused, graph_.node(id));
      graph_.RemoveNode(id);
    }
    graph_.mutable_node(chain.nodes.back()) = std::move(fused);
    return true;
  }

  Graph& graph_;
  const PassContext& context_;
  const Consumers consumers_;  // of the graph before any change
  std::vector<bool> taken_;
};

}  // namespace

absl::StatusOr<bool> FuseBiasActivation(Graph& graph, const PassContext& context) {
  return Fuser(graph, context).Run();
}

}  // namespace thalweg
