#include "thalweg/graph/shape_inference.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/integer_literal.h"

namespace thalweg {

// Longest constant vector that is followed as a value; shapes have at most kMaxRank dims.
constexpr size_t kMostTrackedElements = kMaxRank;

class ShapeInferrer {
 public:
  ShapeInferrer(const Graph& graph, const ShapeInferenceOptions& options, std::vector<Finding>* findings)
      : graph_(graph), options_(options), findings_(findings) {}

  InferredShapes Run() {
    Allocate();
    const absl::StatusOr<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!order.ok()) return std::move(result_);  // reported where cycles are looked for
    Pass(*order);
    if (!loop_merges_.empty()) RefineLoops(*order);
    return std::move(result_);
  }

 private:
  // What iterations of a loop change in the shape that a Merge is first given.
  struct Changes {
    bool rank = false;
    std::vector<bool> dims;
  };

  void Pass(const std::vector<NodeId>& order) {
    done_.assign(graph_.num_nodes(), false);
    for (const NodeId id : order) {
      InferNode(id);
      done_[id] = true;
    }
  }

  // Supposes first that loops keep all shapes, then repeats without what proved wrong, which grows each time. When nothing new
  // does, the shapes hold in the first iteration and, where they hold in one, in the next. What such shapes contradict is no
  // fault of the graph: a body need not run.
  void RefineLoops(const std::vector<NodeId>& order) {
    constexpr int kMostPasses = 8;
    findings_ = nullptr;
    changes_.assign(loop_merges_.size(), Changes());
    refining_ = true;
    for (int pass = 1; pass <= kMostPasses; ++pass) {
      Repeat(order);
      if (!FindChanges()) return;
    }
    refining_ = false;
    Repeat(order);
  }

  void Repeat(const std::vector<NodeId>& order) {
    std::fill(result_.shapes_.begin(), result_.shapes_.end(), PartialShape());
    std::fill(result_.fact_index_.begin(), result_.fact_index_.end(), 0);
    result_.facts_.resize(1);
    Pass(order);
  }

  // True if a loop was found to change more than was known.
  bool FindChanges() {
    bool found = false;
    for (const auto& [id, index] : loop_merges_) {
      const PartialShape& supposed = result_.output(id, 0);
      Changes& changes = changes_[index];
      if (!supposed.has_rank()) continue;
      changes.dims.resize(std::max<size_t>(changes.dims.size(), supposed.rank()));
      for (const Endpoint input : graph_.node(id).data_inputs()) {
        const PartialShape& given = result_.output(input);
        if (given.rank() != supposed.rank()) {
          found |= !changes.rank;
          changes.rank = true;
          continue;
        }
        for (int d = 0; d < supposed.rank(); ++d) {
          if (changes.dims[d] || given.dim(d) == supposed.dim(d)) continue;
          changes.dims[d] = found = true;
        }
      }
    }
    return found;
  }

  // The shape that a Merge of a loop has as far as its inputs from outside agree and the loop is not known to change it.
  PartialShape SupposedShape(NodeId id) const {
    const Changes& changes = changes_[loop_merges_.at(id)];
    if (changes.rank) return PartialShape();
    std::optional<PartialShape> shape;
    for (const Endpoint input : graph_.node(id).data_inputs()) {
      if (!done_[input.node]) continue;
      const PartialShape& given = result_.output(input);
      if (!given.has_rank() || (shape && shape->rank() != given.rank())) return PartialShape();
      if (!shape) shape = given;
      for (int d = 0; d < given.rank(); ++d) {
        const bool changed = static_cast<size_t>(d) < changes.dims.size() && changes.dims[d];
        if (changed || shape->dim(d) != given.dim(d)) shape->set_dim(d, kUnknownDim);
      }
    }
    return shape ? *std::move(shape) : PartialShape();
  }

  void Allocate() {
    result_.offsets_.reserve(graph_.num_nodes() + 1);
    int32_t outputs = 0;
    for (const Node& node : graph_.nodes()) {
      result_.offsets_.push_back(outputs);
      outputs += node.removed ? 0 : node.num_outputs();
    }
    result_.offsets_.push_back(outputs);
    result_.shapes_.resize(outputs);
    result_.fact_index_.resize(outputs, 0);
    result_.facts_.resize(1);
  }

  void InferNode(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.num_outputs() == 0 && node.num_data_inputs == 0) return;
    if (node.schema != nullptr && node.schema->role == OpRole::kRecv && PassThroughTransfer(id)) return;
    const bool carried_by_loop = GatherInputs(node);
    if (node.schema == nullptr || node.schema->shape_fn == nullptr || carried_by_loop) {
      SetUnknown(id, carried_by_loop);
      if (carried_by_loop && HasRole(node, OpRole::kMerge)) SetLoopMerge(id);
    } else {
      ShapeContext context(node.node_attrs(), types_, shapes_, literals_, values_, node.num_outputs(), &next_symbol_);
      context.set_producer(graph_.versions.producer);
      const absl::Status status = node.schema->shape_fn(context);
      if (!status.ok() && !IsWhollyFed(id)) Report(id, status);
      for (int i = 0; i < node.num_outputs(); ++i) {
        if (status.ok()) SetOutput(id, i, context.output(i), context.output_value(i));
        else SetOutput(id, i, PartialShape(), std::nullopt);
      }
      if (status.ok()) PassLiterals(id);
    }
    ApplyOverrides(id);
  }

  void SetLoopMerge(NodeId id) {
    if (refining_) SetOutput(id, 0, SupposedShape(id), std::nullopt);
    else loop_merges_.try_emplace(id, loop_merges_.size());
  }

  // A _Recv gives what its _Send, the source of its control input, reads.
  bool PassThroughTransfer(NodeId recv) {
    for (const Endpoint input : graph_.node(recv).control_inputs()) {
      const Node& send = graph_.node(input.node);
      if (send.schema == nullptr || send.schema->role != OpRole::kSend || !done_[send.inputs[0].node]) continue;
      const int32_t from = result_.offsets_[send.inputs[0].node] + send.inputs[0].port;
      const int32_t to = result_.offsets_[recv];
      result_.shapes_[to] = result_.shapes_[from];
      result_.fact_index_[to] = result_.fact_index_[from];
      return true;
    }
    return false;
  }

  // Collects what is known of the node's inputs. True if one of them comes from a later node: the value that a loop
  // carries.
  bool GatherInputs(const Node& node) {
    types_.clear();
    shapes_.clear();
    literals_.clear();
    values_.clear();
    bool carried_by_loop = false;
    for (const Endpoint input : node.data_inputs()) {
      types_.push_back(RemoveRef(graph_.node(input.node).output_types[input.port]));
      if (!done_[input.node]) {
        carried_by_loop = true;
        shapes_.emplace_back();
        literals_.emplace_back();
        values_.emplace_back();
      } else {
        shapes_.push_back(result_.output(input));
        literals_.push_back(result_.literal(input));
        values_.push_back(result_.value(input));
      }
    }
    return carried_by_loop;
  }

  // Merge's second output, the index of the input that arrived, is a scalar whatever the loop carries.
  void SetUnknown(NodeId id, bool is_loop_merge) {
    for (int i = 0; i < graph_.node(id).num_outputs(); ++i) {
      SetOutput(id, i, is_loop_merge && i == 1 ? PartialShape::Known(Shape()) : PartialShape(), std::nullopt);
    }
  }

  void SetOutput(NodeId id, int port, PartialShape shape, SymbolicValue value) {
    if (shape.has_rank()) {
      for (int d = 0; d < shape.rank(); ++d) {
        if (shape.dim(d) == kUnknownDim) shape.set_dim(d, next_symbol_--);
      }
    }
    const int32_t output = result_.offsets_[id] + port;
    result_.shapes_[output] = std::move(shape);
    if (value.has_value()) FactsOf(output).value = std::move(value);
  }

  InferredShapes::Facts& FactsOf(int32_t output) {
    int32_t& index = result_.fact_index_[output];
    if (index == 0) {
      index = static_cast<int32_t>(result_.facts_.size());
      result_.facts_.emplace_back();
    }
    return result_.facts_[index];
  }

  // Constants, ops whose output 0 is their input 0, constants put together, and integers that shape functions found.
  void PassLiterals(NodeId id) {
    static const auto& kPassing = *new absl::flat_hash_set<absl::string_view>{
        "Identity", "StopGradient", "PreventGradient", "Snapshot", "Enter", "Exit"};
    const Node& node = graph_.node(id);
    if (node.num_outputs() == 1) {
      if (node.is("Const")) {
        const auto* literal = std::get_if<TensorLiteralPtr>(node.attrs.Find("value"));
        if (literal != nullptr && (*literal)->fault.empty()) SetLiteral(id, 0, *literal);
        return;
      }
      if (kPassing.contains(node.op)) {
        if (!literals_.empty() && literals_[0] != nullptr) SetLiteral(id, 0, literals_[0]);
        return;
      }
      if (node.is("Pack") && JoinLiterals(id, literals_)) return;
      if (node.is("ConcatV2") && JoinLiterals(id, absl::MakeConstSpan(literals_).first(literals_.size() - 1))) return;
    }
    // What a Switch hands on may never arrive: nothing is refused for its value.
    if (HasRole(node, OpRole::kSwitch)) return;
    for (int i = 0; i < node.num_outputs(); ++i) SetLiteralOfValue(id, i);
  }

  // The integers of constants, one after the other, as the vector that output 0 is. Other than the values that shape functions
  // pass on, these may be negative: axes, say.
  bool JoinLiterals(NodeId id, absl::Span<const TensorLiteralPtr> parts) {
    std::vector<int64_t> joined;
    for (const TensorLiteralPtr& part : parts) {
      if (part == nullptr) return false;
      const absl::StatusOr<std::vector<int64_t>> ints = part->ToInt64s(kMostTrackedElements);
      if (!ints.ok() || joined.size() + ints->size() > kMostTrackedElements) return false;
      joined.insert(joined.end(), ints->begin(), ints->end());
    }
    return SetInts(id, 0, joined);
  }

  void SetLiteralOfValue(NodeId id, int port) {
    const int32_t index = result_.fact_index_[result_.offsets_[id] + port];
    if (index == 0) return;
    const SymbolicValue& value = result_.facts_[index].value;
    if (value && std::all_of(value->begin(), value->end(), IsKnownDim))
      SetInts(id, port, std::vector<int64_t>(value->begin(), value->end()));
  }

  // False if the output is not an integer vector or scalar of so many elements.
  bool SetInts(NodeId id, int port, const std::vector<int64_t>& values) {
    const PartialShape& shape = result_.output(id, port);
    if (shape.rank() > 1 || shape.NumElementsOrUnknown() != static_cast<int64_t>(values.size())) return false;
    const absl::StatusOr<Shape> known = shape.ToShape();
    if (!known.ok()) return false;
    const TensorLiteralPtr literal = IntegerLiteral(graph_.node(id).output_types[port], *known, values);
    if (literal != nullptr) SetLiteral(id, port, literal);
    return literal != nullptr;
  }

  void SetLiteral(NodeId id, int port, const TensorLiteralPtr& literal) {
    InferredShapes::Facts& facts = FactsOf(result_.offsets_[id] + port);
    facts.literal = literal;
    if (facts.value.has_value() || literal->shape.rank() > 1 || literal->shape.num_elements() > static_cast<int64_t>(kMostTrackedElements))
      return;
    const absl::StatusOr<std::vector<int64_t>> ints = literal->ToInt64s(kMostTrackedElements);
    if (!ints.ok()) return;
    // Negative elements mean "unknown" in shapes; anything else negative is no size.
    if (std::any_of(ints->begin(), ints->end(), [](int64_t v) { return v < kUnknownDim; })) return;
    facts.value = Dims(ints->begin(), ints->end());
  }

  bool IsWhollyFed(NodeId id) const {
    if (options_.overrides.empty() || graph_.node(id).num_outputs() == 0) return false;
    for (int i = 0; i < graph_.node(id).num_outputs(); ++i) {
      if (!options_.overrides.contains(Endpoint{id, i})) return false;
    }
    return true;
  }

  // A fed tensor has the shape of the feed, and no value that was known before.
  void ApplyOverrides(NodeId id) {
    if (options_.overrides.empty()) return;
    for (int i = 0; i < graph_.node(id).num_outputs(); ++i) {
      const auto found = options_.overrides.find(Endpoint{id, i});
      if (found == options_.overrides.end()) continue;
      result_.fact_index_[result_.offsets_[id] + i] = 0;
      SetOutput(id, i, found->second, std::nullopt);
    }
  }

  void Report(NodeId id, const absl::Status& status) {
    if (findings_ == nullptr) return;
    const Node& node = graph_.node(id);
    Finding finding;
    // With nothing known of its inputs the node contradicts no other: what is wrong with it alone fails the steps that run it.
    const auto unknown = [](const PartialShape& shape) { return !shape.has_rank(); };
    if (!shapes_.empty() && std::all_of(shapes_.begin(), shapes_.end(), unknown)) finding.severity = Finding::Severity::kWarning;
    finding.code = status.code();
    finding.kind = "shape";
    finding.node = std::string(node.name);
    finding.op = std::string(node.op);
    finding.node_id = id;
    finding.message = absl::StrCat(NodeLabel(node), ": ", status.message(), "; input shapes: ", InputShapes());
    findings_->push_back(std::move(finding));
  }

  std::string InputShapes() const {
    constexpr size_t kMostShown = 8;
    std::vector<std::string> texts;
    for (size_t i = 0; i < std::min(shapes_.size(), kMostShown); ++i) texts.push_back(shapes_[i].ToString());
    if (shapes_.size() > kMostShown) texts.push_back(absl::StrCat(shapes_.size() - kMostShown, " more"));
    return texts.empty() ? "none" : absl::StrJoin(texts, ", ");
  }

  const Graph& graph_;
  const ShapeInferenceOptions& options_;
  std::vector<Finding>* findings_;
  InferredShapes result_;
  std::vector<bool> done_;
  absl::flat_hash_map<NodeId, size_t> loop_merges_;  // -> index into changes_
  std::vector<Changes> changes_;
  bool refining_ = false;
  int64_t next_symbol_ = kUnknownDim - 1;
  // The inputs of the node at hand; kept for their memory.
  std::vector<DType> types_;
  std::vector<PartialShape> shapes_;
  std::vector<TensorLiteralPtr> literals_;
  std::vector<SymbolicValue> values_;
};

InferredShapes InferShapes(const Graph& graph, const ShapeInferenceOptions& options, std::vector<Finding>* findings) {
  return ShapeInferrer(graph, options, findings).Run();
}

}  // namespace thalweg
