#include "thalweg/graph/passes/arithmetic.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

using Replacement = std::optional<Endpoint>;

class Simplifier {
 public:
  Simplifier(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), bypass_(graph, context.preserve) {}

  absl::StatusOr<bool> Run() {
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    for (NodeId id : order) {
      const Node& node = graph_.node(id);
      const Rule rule = RuleFor(node);
      if (rule == nullptr || !IsPure(graph_, node)) continue;
      if (Replacement source = (this->*rule)(id, node)) bypass_.Offer(id, *source);
    }
    const bool changed = bypass_.Apply();
    if (changed) RemoveUnreachable(graph_, context_.preserve);
    return changed;
  }

 private:
  // Each rule gives the endpoint whose value equals the node's output, if it can tell.
  using Rule = Replacement (Simplifier::*)(NodeId, const Node&) const;

  static Rule RuleFor(const Node& node) {
    static const auto& rules = *new absl::flat_hash_map<absl::string_view, Rule>{
        {"Add", &Simplifier::AddZero},           {"AddV2", &Simplifier::AddZero},
        {"Sub", &Simplifier::SubZero},           {"Mul", &Simplifier::MulOne},
        {"Neg", &Simplifier::TwiceIsNothing},    {"LogicalNot", &Simplifier::TwiceIsNothing},
        {"Invert", &Simplifier::TwiceIsNothing}, {"Transpose", &Simplifier::TransposeBack},
        {"Reshape", &Simplifier::SameShape},     {"BroadcastTo", &Simplifier::SameShape},
        {"Cast", &Simplifier::CastBack},         {"AddN", &Simplifier::OnlyOperand},
    };
    auto it = rules.find(node.op);
    return it == rules.end() ? nullptr : it->second;
  }

  // The node behind input `i`, as it will be read after what has been taken out so far.
  const Node& Producer(const Node& node, int i) const { return graph_.node(bypass_.Resolve(node.inputs[i]).node); }

  // True if input `i` is an integer constant with all elements equal to `value` and so shaped that it does not
  // broadcast the other input.
  bool IsNeutral(const Node& node, int i, int64_t value) const {
    if (!IsInteger(node.output_types[0])) return false;
    const TensorLiteralPtr literal = FreeConstInput(graph_, node, i);
    if (literal == nullptr || literal->shape.rank() != 0) return false;
    absl::StatusOr<std::vector<int64_t>> values = literal->ToInt64s();
    return values.ok() && values->size() == 1 && (*values)[0] == value;
  }

  Replacement EitherNeutral(const Node& node, int64_t value) const {
    if (IsNeutral(node, 1, value)) return node.inputs[0];
    if (IsNeutral(node, 0, value)) return node.inputs[1];
    return std::nullopt;
  }

  Replacement AddZero(NodeId, const Node& node) const { return EitherNeutral(node, 0); }
  Replacement MulOne(NodeId, const Node& node) const { return EitherNeutral(node, 1); }
  Replacement SubZero(NodeId, const Node& node) const {
    return IsNeutral(node, 1, 0) ? Replacement(node.inputs[0]) : std::nullopt;
  }

  // Op(Op(x)) is x.
  Replacement TwiceIsNothing(NodeId, const Node& node) const {
    const Node& inner = Producer(node, 0);
    if (inner.op != node.op || !inner.control_inputs().empty()) return std::nullopt;
    return inner.inputs[0];
  }

  Replacement OnlyOperand(NodeId, const Node& node) const {
    return node.num_data_inputs == 1 ? Replacement(node.inputs[0]) : std::nullopt;
  }

  // The constant permutation of a Transpose, with negative entries counted from the end (L21).
  std::optional<std::vector<int64_t>> Permutation(const Node& node) const {
    const TensorLiteralPtr literal = FreeConstInput(graph_, node, 1);
    if (literal == nullptr || literal->shape.rank() != 1) return std::nullopt;
    absl::StatusOr<std::vector<int64_t>> perm = literal->ToInt64s(kMaxRank);
    if (!perm.ok()) return std::nullopt;
    const auto rank = static_cast<int64_t>(perm->size());
    std::vector<bool> seen(rank, false);
    for (int64_t& axis : *perm) {
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank || seen[axis]) return std::nullopt;
      seen[axis] = true;
    }
    return *std::move(perm);
  }

  Replacement TransposeBack(NodeId, const Node& node) const {
    const std::optional<std::vector<int64_t>> outer = Permutation(node);
    if (!outer) return std::nullopt;
    const auto is_identity = [](const std::vector<int64_t>& perm) {
      for (size_t i = 0; i < perm.size(); ++i) {
        if (perm[i] != static_cast<int64_t>(i)) return false;
      }
      return true;
    };
    if (is_identity(*outer) && HasRank(node.inputs[0], outer->size())) return node.inputs[0];
    const Node& inner = Producer(node, 0);
    if (!inner.is("Transpose") || !inner.control_inputs().empty() || !HasRank(inner.inputs[0], outer->size()))
      return std::nullopt;
    std::optional<std::vector<int64_t>> both = Permutation(inner);
    if (!both || both->size() != outer->size()) return std::nullopt;
    std::vector<int64_t> composed;
    for (int64_t axis : *outer) composed.push_back((*both)[axis]);
    return is_identity(composed) ? Replacement(inner.inputs[0]) : std::nullopt;
  }

  // A wrong rank is an error that must not get lost.
  bool HasRank(Endpoint e, size_t rank) const {
    const PartialShape* shape = context_.shapes->Of(e);
    return shape != nullptr && shape->has_rank() && shape->rank() == static_cast<int>(rank);
  }

  // The result is known to have the very shape of the input.
  Replacement SameShape(NodeId id, const Node& node) const {
    if (FreeConstInput(graph_, node, 1) == nullptr) return std::nullopt;
    const PartialShape* in = context_.shapes->Of(node.inputs[0]);
    const PartialShape* out = context_.shapes->Of({id, 0});
    return in != nullptr && out != nullptr && in->IsFullyKnown() && *in == *out ? Replacement(node.inputs[0])
                                                                                : std::nullopt;
  }

  // Integers that fit come back from a wider type unchanged.
  static bool Widens(DType narrow, DType wide) {
    if (!IsInteger(narrow) || !IsInteger(wide)) return false;
    const auto is_unsigned = [](DType t) {
      return t == DType::kUInt8 || t == DType::kUInt16 || t == DType::kUInt32 || t == DType::kUInt64;
    };
    if (is_unsigned(narrow) == is_unsigned(wide)) return DTypeSize(wide) >= DTypeSize(narrow);
    return is_unsigned(narrow) && DTypeSize(wide) > DTypeSize(narrow);
  }

  Replacement CastBack(NodeId, const Node& node) const {
    const auto type_of = [](const Node& n, const char* attr) {
      return n.node_attrs().GetOr<DType>(attr, DType::kInvalid);
    };
    const DType from = type_of(node, "SrcT");
    const DType to = type_of(node, "DstT");
    if (from == to && from != DType::kInvalid) return node.inputs[0];
    const Node& inner = Producer(node, 0);
    if (!inner.is("Cast") || !inner.control_inputs().empty() || type_of(inner, "SrcT") != to) return std::nullopt;
    return Widens(to, from) ? Replacement(inner.inputs[0]) : std::nullopt;
  }

  Graph& graph_;
  const PassContext& context_;
  Bypass bypass_;
};

}  // namespace

absl::StatusOr<bool> SimplifyArithmetic(Graph& graph, const PassContext& context) {
  return Simplifier(graph, context).Run();
}

}  // namespace thalweg
