#include "thalweg/graph/passes/constant_folding.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/integer_literal.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

constexpr int64_t kLargestResultBytes = 10 << 20;  // of one output (F11)
constexpr int64_t kMostBytesInAll = 256 << 20;     // of all results of one graph
constexpr double kMostNanosPerNode = 50e6;  // estimated; what takes longer is better done in parallel at run time
constexpr double kMostElementsOfUnknownCost = 65536;  // of inputs, where no cost is declared
constexpr double kMostNanosInAll = 500e6;

// What a metadata op says of an input with this shape; null if that is not known yet.
TensorLiteralPtr MetadataOf(const Node& node, const PartialShape& shape, DType dtype) {
  if (node.is("Rank")) return shape.has_rank() ? IntegerLiteral(dtype, Shape(), {shape.rank()}) : nullptr;
  if (!shape.IsFullyKnown()) return nullptr;
  absl::StatusOr<Shape> known = shape.ToShape();
  if (!known.ok()) return nullptr;
  if (node.is("Size")) return IntegerLiteral(dtype, Shape(), {known->num_elements()});
  const std::vector<int64_t> dims(known->dims().begin(), known->dims().end());
  return IntegerLiteral(dtype, Shape::Of({known->rank()}), dims);
}

bool IsMetadata(const Node& node) {
  return node.is("Shape") || node.is("ShapeN") || node.is("Rank") || node.is("Size");
}

class Folder {
 public:
  Folder(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  absl::StatusOr<bool> Run() {
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    for (NodeId id : order) {
      RedirectInputs(id);
      if (context_.preserve.contains(id) || !IsPure(graph_, graph_.node(id)) || graph_.node(id).num_data_inputs == 0)
        continue;
      std::vector<TensorLiteralPtr> values =
          IsMetadata(graph_.node(id)) ? KnownMetadata(id) : std::vector<TensorLiteralPtr>();
      if (values.empty()) values = Evaluated(id);
      if (!values.empty()) THALWEG_RETURN_IF_ERROR(Replace(id, std::move(values)));
    }
    if (!changed_) return false;
    if (!split_into_.empty()) {
      for (NodeId id : order) RedirectInputs(id);  // edges that close loops lead to nodes that came later
    }
    RemoveUnreachable(graph_, context_.preserve);
    return true;
  }

 private:
  // The values of a metadata node, if the shapes say them (F8).
  std::vector<TensorLiteralPtr> KnownMetadata(NodeId id) const {
    const Node& node = graph_.node(id);
    std::vector<TensorLiteralPtr> values;
    for (int i = 0; i < node.num_data_inputs; ++i) {
      // The control edge that keeps the order cannot say that a Switch left this output empty.
      if (i >= node.num_outputs() || MayLeaveOutputsEmpty(graph_.node(node.inputs[i].node))) return {};
      const PartialShape* shape = context_.shapes->Of(node.inputs[i]);
      TensorLiteralPtr value = shape == nullptr ? nullptr : MetadataOf(node, *shape, node.output_types[i]);
      if (value == nullptr) return {};
      values.push_back(std::move(value));
    }
    return values;
  }

  // The values of a node with constant inputs, if the evaluator can tell them cheaply.
  std::vector<TensorLiteralPtr> Evaluated(NodeId id) {
    const Node& node = graph_.node(id);
    if (context_.request->evaluator == nullptr) return {};
    std::vector<TensorLiteralPtr> inputs;
    for (Endpoint input : node.data_inputs()) {
      TensorLiteralPtr value = ConstValue(graph_.node(input.node));
      if (value == nullptr) return {};
      inputs.push_back(std::move(value));
    }
    if (!IsCheap(id, inputs)) return {};
    absl::StatusOr<std::vector<TensorLiteralPtr>> outputs =
        context_.request->evaluator->Evaluate(graph_, node, inputs, kLargestResultBytes);
    if (!outputs.ok() || !FitDeclaration(node, *outputs)) return {};
    return *std::move(outputs);
  }

  bool IsCheap(NodeId id, const std::vector<TensorLiteralPtr>& inputs) {
    const Node& node = graph_.node(id);
    std::vector<DType> input_types;
    std::vector<PartialShape> input_shapes, output_shapes;
    double input_elements = 0;
    for (const TensorLiteralPtr& input : inputs) {
      input_types.push_back(input->dtype);
      input_shapes.push_back(PartialShape::Known(input->shape));
      input_elements += static_cast<double>(input->shape.num_elements());
    }
    for (int i = 0; i < node.num_outputs(); ++i) {
      const PartialShape* shape = context_.shapes->Of({id, i});
      output_shapes.push_back(shape == nullptr ? PartialShape() : *shape);
      const int64_t elements = output_shapes.back().NumElementsOrUnknown();
      const auto element_size = static_cast<int64_t>(std::max<size_t>(DTypeSize(node.output_types[i]), 1));
      if (elements > kLargestResultBytes / element_size) return false;  // too large to be worth evaluating
    }
    if (node.schema->cost_fn == nullptr) return input_elements <= kMostElementsOfUnknownCost;
    const CostContext cost(node.node_attrs(), input_types, input_shapes, node.output_types, output_shapes);
    const double nanos = EstimatedNanos(node.schema->cost_fn(cost));
    if (nanos > kMostNanosPerNode || nanos_ + nanos > kMostNanosInAll) return false;
    nanos_ += nanos;
    return true;
  }

  bool FitDeclaration(const Node& node, const std::vector<TensorLiteralPtr>& outputs) {
    if (static_cast<int>(outputs.size()) != node.num_outputs()) return false;
    int64_t bytes = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == nullptr || outputs[i]->dtype != node.output_types[i]) return false;
      const int64_t size = outputs[i]->MaterialisedBytes();
      if (size > kLargestResultBytes) return false;
      bytes += size;
    }
    if (bytes_ + bytes > kMostBytesInAll) return false;
    bytes_ += bytes;
    return true;
  }

  absl::Status Replace(NodeId id, std::vector<TensorLiteralPtr> values) {
    changed_ = true;
    const std::vector<Endpoint> controls = InheritedControls(id);
    if (values.size() == 1) return TurnIntoConst(id, std::move(values[0]), controls);
    return SplitIntoConsts(id, std::move(values), controls);
  }

  absl::Status SplitIntoConsts(NodeId id, std::vector<TensorLiteralPtr> values, const std::vector<Endpoint>& controls) {
    std::vector<NodeId> constants;
    for (TensorLiteralPtr& value : values) {
      THALWEG_ASSIGN_OR_RETURN(Node constant, NewInternalNode(graph_, "Const"));
      constant.attrs.Set("dtype", value->dtype);
      constant.output_types = {value->dtype};
      constant.attrs.Set("value", std::move(value));
      constant.inputs.assign(controls.begin(), controls.end());
      constant.requested_device = graph_.node(id).requested_device;
      const NodeId made = graph_.AddDerivedNode(absl::StrCat(graph_.node(id).name, "/_folded"), std::move(constant),
                                                "constant_folding");
      graph_.mutable_node(made).origin = graph_.node(id).origin;
      Absorb(graph_.mutable_node(made), graph_.node(id));
      constants.push_back(made);
    }
    split_into_.emplace(id, std::move(constants));
    return absl::OkStatus();
  }

  // In place, so that readers and the name stay.
  absl::Status TurnIntoConst(NodeId id, TensorLiteralPtr value, const std::vector<Endpoint>& controls) {
    THALWEG_ASSIGN_OR_RETURN(const Node constant, NewInternalNode(graph_, "Const"));
    for (Endpoint input : graph_.node(id).data_inputs()) {
      if (IsConst(graph_.node(input.node))) Absorb(graph_.mutable_node(id), graph_.node(input.node));
    }
    const absl::string_view op = graph_.Intern(constant.op);
    Node& node = graph_.mutable_node(id);
    node.op = op;
    node.schema = constant.schema;
    AttrMap attrs;
    if (const Attr* group = node.attrs.Find("_class")) attrs.Set("_class", *group);
    attrs.Set("dtype", value->dtype);
    attrs.Set("value", std::move(value));
    node.attrs = std::move(attrs);
    node.inputs.assign(controls.begin(), controls.end());
    node.num_data_inputs = 0;
    return absl::OkStatus();
  }

  // The control edges of the node and of the constants it was computed from; from other producers, the node itself ran
  // after them (F8, F9).
  std::vector<Endpoint> InheritedControls(NodeId id) const {
    const Node& node = graph_.node(id);
    std::vector<Endpoint> controls(node.control_inputs().begin(), node.control_inputs().end());
    for (Endpoint input : node.data_inputs()) {
      const Node& producer = graph_.node(input.node);
      if (IsConst(producer)) {
        controls.insert(controls.end(), producer.control_inputs().begin(), producer.control_inputs().end());
      } else if (!IsStepBoundary(producer)) {
        controls.push_back({input.node, kControlPort});
      }
    }
    std::sort(controls.begin(), controls.end());
    controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
    return controls;
  }

  // Readers of a node that became several constants move to those; its control readers to the first, which inherited
  // all the control edges that the node had.
  void RedirectInputs(NodeId id) {
    if (split_into_.empty()) return;
    for (Endpoint& input : graph_.mutable_node(id).inputs) {
      const auto found = split_into_.find(input.node);
      if (found == split_into_.end()) continue;
      input = input.is_control() ? Endpoint{found->second[0], kControlPort} : Endpoint{found->second[input.port], 0};
    }
  }

  Graph& graph_;
  const PassContext& context_;
  bool changed_ = false;
  double nanos_ = 0;
  int64_t bytes_ = 0;
  absl::flat_hash_map<NodeId, std::vector<NodeId>> split_into_;  // node with several outputs -> a constant for each
};

}  // namespace

absl::StatusOr<bool> FoldConstants(Graph& graph, const PassContext& context) { return Folder(graph, context).Run(); }

}  // namespace thalweg
