#include "thalweg/graph/passes/hoist_products.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

constexpr char kPassName[] = "hoist_products";

constexpr int64_t kSmallestMatrix = 64 << 10;     // bytes: less is read from first-level caches anyway
constexpr int64_t kMostRowsPerElement = 32;       // with more, each product makes good use of the matrix it reads
constexpr int64_t kLargestProduct = 64 << 20;     // bytes of all rows

// An element of a sequence that is known before the loop.
struct SequenceElement {
  Endpoint sequence;  // before the loop: [elements, rows, columns]
  NodeId filled = kNoNode;  // before the loop: once it has run, so has all that may fail before the loop
  Endpoint index;     // in the loop
  NodeId read = kNoNode;  // in the loop: once it has run, the element is known to exist
  int64_t elements = 0, rows = 0, columns = 0;
};

// A product that can be moved.
struct Hoist {
  NodeId product = kNoNode;
  NodeId place = kNoNode;       // the product, or the node that adds a constant bias to it and nobody else reads it
  Endpoint bias;                // in the second case
  SequenceElement element;
  TensorLiteralPtr matrix;      // all of it
  int64_t first_row = 0;        // of the matrix: those that the element is multiplied by
  std::vector<Endpoint> others; // what else is concatenated with the element, in order
  Endpoint axis;                // along which
  NodeId enter = kNoNode;       // any Enter of the loop

  int64_t matrix_columns() const { return matrix->shape.dim(1); }
};

class Hoister {
 public:
  Hoister(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), consumers_(graph.BuildConsumers()) {}

  // Moves one element of each product.
  absl::StatusOr<bool> Run() {
    const absl::StatusOr<ControlFlow> flow = AnalyzeControlFlow(graph_);
    if (!flow.ok() || !flow->has_loops()) return false;  // what is wrong with it is reported by who compiles it
    flow_ = &*flow;
    std::vector<Hoist> hoists;
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      if (std::optional<Hoist> hoist = HoistOf(id)) hoists.push_back(*std::move(hoist));
    }
    for (const Hoist& hoist : hoists) THALWEG_RETURN_IF_ERROR(Apply(hoist));
    if (hoists.empty()) return false;
    RemoveUnreachable(graph_, context_.preserve);
    context_.shapes->Forget();
    return true;
  }

 private:
  // ---- Finding them

  std::optional<Hoist> HoistOf(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.removed || !node.is("MatMul") || node.output_types[0] != DType::kFloat32) return std::nullopt;
    const int32_t frame = flow_->frame_of[id];
    if (frame == kRootFrame || flow_->frames[frame].parent != kRootFrame) return std::nullopt;
    const NodeAttrs attrs = node.node_attrs();
    if (attrs.GetOr<bool>("transpose_a", false) || attrs.GetOr<bool>("transpose_b", false)) return std::nullopt;
    if (context_.preserve.contains(id) || IsGrouped(node) || SomeDeviceLoses(node)) return std::nullopt;
    Hoist hoist;
    hoist.product = id;
    hoist.enter = flow_->frames[frame].enters.front();
    hoist.matrix = InvariantConstant(node.inputs[1]);
    if (hoist.matrix == nullptr || !hoist.matrix->fault.empty() || hoist.matrix->shape.rank() != 2) return std::nullopt;
    if (!FindElement(node.inputs[0], &hoist) && !FindElementOfConcat(node.inputs[0], &hoist)) return std::nullopt;
    const SequenceElement& element = hoist.element;
    const auto bytes = [](int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b) * sizeof(float); };
    const int64_t all_rows = element.elements * element.rows;
    if (bytes(element.columns, hoist.matrix_columns()) < kSmallestMatrix || element.rows > kMostRowsPerElement ||
        bytes(all_rows, hoist.matrix_columns()) > kLargestProduct) {
      return std::nullopt;
    }
    FindBias(&hoist);
    return hoist;
  }

  // A bias moves, too.
  void FindBias(Hoist* hoist) const {
    hoist->place = hoist->product;
    const absl::Span<const Consumers::Use> uses = consumers_.of(hoist->product);
    if (uses.size() != 1 || uses[0].port != 0 || context_.preserve.contains(uses[0].node)) return;
    const Node& sum = graph_.node(uses[0].node);
    const Node& product = graph_.node(hoist->product);
    if (!sum.is("BiasAdd") || uses[0].input != 0 || sum.requested_device != product.requested_device || IsGrouped(sum)) return;
    const std::optional<Endpoint> before = InvariantSource(sum.inputs[1]);
    if (!before || !IsConst(graph_.node(before->node)) || !graph_.node(before->node).inputs.empty()) return;
    const TensorLiteralPtr bias = ConstValue(graph_.node(before->node));
    if (bias == nullptr || bias->shape.rank() != 1 || bias->shape.dim(0) != hoist->matrix_columns()) return;
    hoist->place = uses[0].node;
    hoist->bias = *before;
  }

  bool IsGrouped(const Node& node) const {
    return context_.request->devices.size() > 1 && node.attrs.Find("_class") != nullptr;
  }

  // No device that can run the product may lack a kernel for what takes its place.
  bool SomeDeviceLoses(const Node& product) const {
    if (context_.request->kernels == nullptr) return false;
    Node gather, add = product;
    gather.op = "GatherV2";
    gather.schema = graph_.schemas->Find(gather.op);
    add.op = "AddV2";
    add.schema = graph_.schemas->Find(add.op);
    if (gather.schema == nullptr || add.schema == nullptr) return true;
    gather.attrs.Set("Tparams", DType::kFloat32);
    gather.attrs.Set("Tindices", DType::kInt32);
    gather.attrs.Set("Taxis", DType::kInt32);
    return std::any_of(context_.request->devices.begin(), context_.request->devices.end(), [&](const PlacementDevice& device) {
      const auto runs = [&](const Node& node) { return context_.request->kernels->CanRun(node, device.backend).ok(); };
      return runs(product) && !(runs(gather) && runs(add));
    });
  }

  // The whole operand is an element.
  bool FindElement(Endpoint operand, Hoist* hoist) const {
    std::optional<SequenceElement> element = ElementOf(operand);
    if (!element || element->columns != hoist->matrix->shape.dim(0)) return false;
    hoist->element = *element;
    return true;
  }

  // An element is concatenated with others along the columns.
  bool FindElementOfConcat(Endpoint operand, Hoist* hoist) const {
    const Node& concat = graph_.node(operand.node);
    if (!concat.is("ConcatV2") || !concat.control_inputs().empty()) return false;
    const absl::Span<const Endpoint> values = concat.data_inputs().subspan(0, concat.num_data_inputs - 1);
    hoist->axis = concat.data_inputs().back();
    const TensorLiteralPtr axis = InvariantConstant(hoist->axis);
    const absl::StatusOr<std::vector<int64_t>> axes =
        axis == nullptr ? absl::NotFoundError("") : axis->ToInt64s();
    if (!axes.ok() || axes->size() != 1 || ((*axes)[0] != 1 && (*axes)[0] != -1)) return false;
    std::optional<size_t> found;
    int64_t row = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      std::optional<SequenceElement> element = ElementOf(values[i]);
      if (element && !found) {
        hoist->element = *element;
        hoist->first_row = row;
        found = i;
      }
      const PartialShape* shape = context_.shapes->Of(values[i]);
      const bool is_matrix = shape != nullptr && shape->has_rank() && shape->rank() == 2;
      if (!element && (!is_matrix || !IsKnownDim(shape->dim(0)) || !IsKnownDim(shape->dim(1)))) return false;
      row += element ? element->columns : shape->dim(1);
    }
    if (!found || row != hoist->matrix->shape.dim(0)) return false;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i == *found) continue;
      // What would not have been concatenated must not be added.
      const std::optional<SequenceElement> element = ElementOf(values[i]);
      if ((element ? element->rows : context_.shapes->Of(values[i])->dim(0)) != hoist->element.rows) return false;
      hoist->others.push_back(values[i]);
    }
    return true;
  }

  std::optional<SequenceElement> ElementOf(Endpoint e) const {
    SequenceElement element;
    element.read = e.node;
    while (graph_.node(e.node).is("EnsureShape") || graph_.node(e.node).is("Identity")) e = graph_.node(e.node).inputs[0];
    const Node& read = graph_.node(e.node);
    if (e.is_control() || read.num_data_inputs < 2) return std::nullopt;
    element.index = read.inputs[1];
    const std::optional<Endpoint> source = InvariantSource(read.inputs[0]);
    if (!source) return std::nullopt;
    if (read.is("TensorListGetItem")) {
      if (!graph_.node(source->node).is("TensorListFromTensor")) return std::nullopt;
      element.filled = source->node;
      element.sequence = graph_.node(source->node).inputs[0];
    } else if (read.is("TensorArrayReadV3")) {
      const std::optional<Endpoint> filled = InvariantSource(read.inputs[2]);
      if (!filled || !IsFilledByOneScatter(*source, *filled)) return std::nullopt;
      element.filled = filled->node;
      element.sequence = graph_.node(filled->node).inputs[2];
    } else {
      return std::nullopt;
    }
    const PartialShape* index = context_.shapes->Of(element.index);
    const PartialShape* sequence = context_.shapes->Of(element.sequence);
    if (index == nullptr || !index->has_rank() || index->rank() != 0) return std::nullopt;
    if (sequence == nullptr || !sequence->IsFullyKnown() || sequence->rank() != 3) return std::nullopt;
    if (read.output_types[0] != DType::kFloat32) return std::nullopt;
    element.elements = sequence->dim(0);
    element.rows = sequence->dim(1);
    element.columns = sequence->dim(2);
    if (element.elements == 0 || element.rows == 0 || element.columns == 0) return std::nullopt;
    return element;
  }

  // Whether the array whose handle is `handle` gets its elements 0, 1, ... from the rows of the scatter whose flow is `flow`,
  // and from nowhere else.
  bool IsFilledByOneScatter(Endpoint handle, Endpoint flow) const {
    const Node& scatter = graph_.node(flow.node);
    if (!graph_.node(handle.node).is("TensorArrayV3") || handle.port != 0) return false;
    if (!scatter.is("TensorArrayScatterV3") || !(scatter.inputs[0] == handle)) return false;
    const TensorLiteralPtr indices = ConstValue(graph_.node(scatter.inputs[1].node));
    const PartialShape* sequence = context_.shapes->Of(scatter.inputs[2]);
    if (indices == nullptr || sequence == nullptr || !sequence->has_rank() || sequence->rank() == 0) return false;
    constexpr int64_t kMostIndices = 1 << 20;
    const absl::StatusOr<std::vector<int64_t>> values = indices->ToInt64s(kMostIndices);
    if (!values.ok() || static_cast<int64_t>(values->size()) != sequence->dim(0)) return false;
    for (size_t i = 0; i < values->size(); ++i) {
      if ((*values)[i] != static_cast<int64_t>(i)) return false;
    }
    return OnlyReads(handle, flow.node);
  }

  // Whether nothing but `scatter` writes to the array, wherever its handle goes.
  bool OnlyReads(Endpoint handle, NodeId scatter) const {
    std::vector<Endpoint> handles = {handle};
    for (size_t i = 0; i < handles.size(); ++i) {
      for (const Consumers::Use& use : consumers_.of(handles[i].node)) {
        if (use.port != handles[i].port || use.node == scatter) continue;
        const Node& reader = graph_.node(use.node);
        if (reader.is("Enter") || reader.is("Identity")) {
          handles.push_back({use.node, 0});
        } else if (!reader.is("TensorArrayReadV3") && !reader.is("TensorArrayGatherV3") && !reader.is("TensorArraySizeV3")) {
          return false;
        }
      }
    }
    return true;
  }

  // What enters the loop as an invariant and arrives at `e`, as an output before the loop.
  std::optional<Endpoint> InvariantSource(Endpoint e) const {
    e = BehindIdentities(e);
    const Node& enter = graph_.node(e.node);
    if (!enter.is("Enter") || !enter.node_attrs().GetOr<bool>("is_constant", false)) return std::nullopt;
    return BehindIdentities(enter.inputs[0]);
  }

  // The constant at `e`, which may have been made in the loop or before it.
  TensorLiteralPtr InvariantConstant(Endpoint e) const {
    e = BehindIdentities(e);
    if (TensorLiteralPtr inside = ConstValue(graph_.node(e.node))) return inside;
    const std::optional<Endpoint> before = InvariantSource(e);
    return before ? ConstValue(graph_.node(before->node)) : nullptr;
  }

  Endpoint BehindIdentities(Endpoint e) const {
    while (graph_.node(e.node).is("Identity")) e = graph_.node(e.node).inputs[0];
    return e;
  }

  // ---- Moving them

  absl::Status Apply(const Hoist& hoist) {
    const SequenceElement& element = hoist.element;
    const int64_t columns = hoist.matrix_columns(), end_row = hoist.first_row + element.columns;
    // Before the loop.
    THALWEG_ASSIGN_OR_RETURN(const NodeId matrix, AddMatrix(hoist, {{hoist.first_row, end_row}}, "element_matrix"));
    THALWEG_ASSIGN_OR_RETURN(const NodeId rows,
                             AddReshape(hoist, element.sequence, {element.elements * element.rows, element.columns}, "rows"));
    THALWEG_ASSIGN_OR_RETURN(NodeId product, AddProduct(hoist, {rows, 0}, {matrix, 0}, "all"));
    if (hoist.place != hoist.product) {
      THALWEG_ASSIGN_OR_RETURN(Node sum, NewNode(hoist, "BiasAdd", {{product, 0}, hoist.bias}));
      sum.attrs.Set("T", DType::kFloat32);
      product = Add(hoist, std::move(sum), "biased");
    }
    THALWEG_ASSIGN_OR_RETURN(const NodeId products,
                             AddReshape(hoist, {product, 0}, {element.elements, element.rows, columns}, "products"));
    THALWEG_ASSIGN_OR_RETURN(const NodeId axis, AddInts(hoist, Shape(), {0}, "axis"));
    // In the loop.
    THALWEG_ASSIGN_OR_RETURN(const Endpoint all, AddEnter(hoist, products));
    THALWEG_ASSIGN_OR_RETURN(const Endpoint along, AddEnter(hoist, axis));
    THALWEG_ASSIGN_OR_RETURN(Node gather, NewNode(hoist, "GatherV2", {all, element.index, along}));
    gather.attrs.Set("Tparams", DType::kFloat32);
    gather.attrs.Set("Tindices", TypeOf(element.index));
    gather.attrs.Set("Taxis", DType::kInt32);
    gather.inputs.push_back({element.read, kControlPort});
    if (hoist.others.empty()) {
      TakePlace(hoist, std::move(gather));
      return absl::OkStatus();
    }
    const NodeId of_element = Add(hoist, std::move(gather), "of_element");
    const int64_t rows_in_all = hoist.matrix->shape.dim(0);
    THALWEG_ASSIGN_OR_RETURN(const NodeId other_matrix,
                             AddMatrix(hoist, {{0, hoist.first_row}, {end_row, rows_in_all}}, "other_matrix"));
    THALWEG_ASSIGN_OR_RETURN(const Endpoint other_invariant, AddEnter(hoist, other_matrix));
    Endpoint operand = hoist.others.front();
    if (hoist.others.size() > 1) {
      THALWEG_ASSIGN_OR_RETURN(operand, AddConcat(hoist));
    }
    THALWEG_ASSIGN_OR_RETURN(const NodeId of_others, AddProduct(hoist, operand, other_invariant, "of_others"));
    THALWEG_ASSIGN_OR_RETURN(Node sum, NewNode(hoist, "AddV2", {{of_others, 0}, {of_element, 0}}));
    sum.attrs.Set("T", DType::kFloat32);
    TakePlace(hoist, std::move(sum));
    return absl::OkStatus();
  }

  DType TypeOf(Endpoint e) const { return graph_.node(e.node).output_types[e.port]; }

  // A node for the place of the product or beside it, with one float output.
  absl::StatusOr<Node> NewNode(const Hoist& hoist, absl::string_view op, std::vector<Endpoint> inputs) const {
    THALWEG_ASSIGN_OR_RETURN(Node node, NewInternalNode(graph_, op));
    node.requested_device = graph_.node(hoist.product).requested_device;
    node.inputs.assign(inputs.begin(), inputs.end());
    node.num_data_inputs = static_cast<int32_t>(inputs.size());
    node.output_types = {DType::kFloat32};
    return node;
  }

  NodeId Add(const Hoist& hoist, Node node, absl::string_view role) {
    const NodeId id = graph_.AddDerivedNode(absl::StrCat(graph_.node(hoist.product).name, "/_", role), std::move(node), kPassName);
    graph_.mutable_node(id).origin = graph_.node(hoist.product).origin;
    return id;
  }

  // The node at the place keeps its name and becomes `node`.
  void TakePlace(const Hoist& hoist, Node node) {
    Node& place = graph_.mutable_node(hoist.place);
    std::vector<Endpoint> controls(place.control_inputs().begin(), place.control_inputs().end());
    if (hoist.place != hoist.product) {
      const Node& product = graph_.node(hoist.product);
      controls.insert(controls.end(), product.control_inputs().begin(), product.control_inputs().end());
      Absorb(place, product);
      graph_.RemoveNode(hoist.product);
    }
    place.op = graph_.Intern(node.op);
    place.schema = node.schema;
    place.attrs = std::move(node.attrs);
    place.inputs = std::move(node.inputs);
    place.num_data_inputs = node.num_data_inputs;
    for (Endpoint control : controls) {
      if (std::find(place.inputs.begin(), place.inputs.end(), control) == place.inputs.end()) place.inputs.push_back(control);
    }
  }

  absl::StatusOr<NodeId> AddConst(const Hoist& hoist, TensorLiteralPtr value, absl::string_view role) {
    THALWEG_ASSIGN_OR_RETURN(Node node, NewNode(hoist, "Const", {}));
    node.output_types = {value->dtype};
    node.attrs.Set("dtype", value->dtype);
    node.attrs.Set("value", std::move(value));
    // Where a conditional leaves the loop out, nothing enters it.
    node.inputs.push_back({hoist.element.filled, kControlPort});
    return Add(hoist, std::move(node), role);
  }

  absl::StatusOr<NodeId> AddInts(const Hoist& hoist, const Shape& shape, std::vector<int32_t> values, absl::string_view role) {
    auto owner = std::make_shared<std::vector<int32_t>>(std::move(values));
    auto literal = std::make_shared<TensorLiteral>();
    literal->dtype = DType::kInt32;
    literal->shape = shape;
    literal->content = absl::string_view(reinterpret_cast<const char*>(owner->data()), owner->size() * sizeof(int32_t));
    literal->owner = std::move(owner);
    return AddConst(hoist, std::move(literal), role);
  }

  // Rows [first, second) of the matrix, for each pair.
  absl::StatusOr<NodeId> AddMatrix(const Hoist& hoist, std::vector<std::pair<int64_t, int64_t>> parts, absl::string_view role) {
    const int64_t columns = hoist.matrix_columns();
    int64_t rows = 0;
    for (const auto& [begin, end] : parts) rows += end - begin;
    auto literal = std::make_shared<TensorLiteral>();
    literal->dtype = DType::kFloat32;
    THALWEG_ASSIGN_OR_RETURN(literal->shape, Shape::Make({rows, columns}));
    auto owner = std::make_shared<std::vector<float>>(rows * columns);
    std::vector<float> whole(hoist.matrix->shape.num_elements());
    hoist.matrix->CopyTo(whole.data());
    auto to = owner->begin();
    for (const auto& [begin, end] : parts) to = std::copy(whole.begin() + begin * columns, whole.begin() + end * columns, to);
    literal->content = absl::string_view(reinterpret_cast<const char*>(owner->data()), owner->size() * sizeof(float));
    literal->owner = std::move(owner);
    return AddConst(hoist, std::move(literal), role);
  }

  absl::StatusOr<NodeId> AddReshape(const Hoist& hoist, Endpoint value, std::vector<int64_t> dims, absl::string_view role) {
    std::vector<int32_t> sizes(dims.begin(), dims.end());
    const Shape shape = Shape::Of({static_cast<int64_t>(sizes.size())});
    THALWEG_ASSIGN_OR_RETURN(const NodeId target, AddInts(hoist, shape, std::move(sizes), absl::StrCat(role, "_shape")));
    THALWEG_ASSIGN_OR_RETURN(Node node, NewNode(hoist, "Reshape", {value, {target, 0}}));
    node.attrs.Set("T", DType::kFloat32);
    node.attrs.Set("Tshape", DType::kInt32);
    return Add(hoist, std::move(node), role);
  }

  absl::StatusOr<NodeId> AddProduct(const Hoist& hoist, Endpoint a, Endpoint b, absl::string_view role) {
    THALWEG_ASSIGN_OR_RETURN(Node node, NewNode(hoist, "MatMul", {a, b}));
    node.attrs.Set("T", DType::kFloat32);
    return Add(hoist, std::move(node), role);
  }

  absl::StatusOr<Endpoint> AddConcat(const Hoist& hoist) {
    std::vector<Endpoint> inputs = hoist.others;
    inputs.push_back(hoist.axis);
    THALWEG_ASSIGN_OR_RETURN(Node node, NewNode(hoist, "ConcatV2", std::move(inputs)));
    node.attrs.Set("T", DType::kFloat32);
    node.attrs.Set("N", static_cast<int64_t>(hoist.others.size()));
    node.attrs.Set("Tidx", TypeOf(hoist.axis));
    return Endpoint{Add(hoist, std::move(node), "others"), 0};
  }

  // The output of `before` as an invariant of the loop.
  absl::StatusOr<Endpoint> AddEnter(const Hoist& hoist, NodeId before) {
    THALWEG_ASSIGN_OR_RETURN(Node node, NewNode(hoist, "Enter", {{before, 0}}));
    const NodeAttrs of_frame = graph_.node(hoist.enter).node_attrs();
    node.output_types = {graph_.node(before).output_types[0]};
    node.attrs.Set("T", graph_.node(before).output_types[0]);
    node.attrs.Set("frame_name", of_frame.GetOr<std::string>("frame_name", ""));
    node.attrs.Set("is_constant", true);
    node.attrs.Set("parallel_iterations", of_frame.GetOr<int64_t>("parallel_iterations", 10));
    return Endpoint{Add(hoist, std::move(node), "enter"), 0};
  }

  Graph& graph_;
  const PassContext& context_;
  const Consumers consumers_;  // of the graph before any change
  const ControlFlow* flow_ = nullptr;
};

}  // namespace

absl::StatusOr<bool> HoistProducts(Graph& graph, const PassContext& context) {
  const bool has_products = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                        [](const Node& node) { return !node.removed && node.is("MatMul"); });
  if (!has_products) return false;
  // A product may have several elements as operands.
  bool changed = false;
  while (true) {
    THALWEG_ASSIGN_OR_RETURN(const bool moved, Hoister(graph, context).Run());
    if (!moved) return changed;
    changed = true;
  }
}

}  // namespace thalweg
