#include "thalweg/graph/passes/common_subexpressions.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/passes/rewrite.h"

namespace thalweg {
namespace {

// Larger constants are not compared: reading them all costs more than a rare duplicate saves.
constexpr size_t kLargestComparedLiteral = 64 << 10;

// Hints that say nothing about what a node computes.
bool IsIgnoredAttr(absl::string_view name) { return name == "_output_shapes" || name == kFunctionNodeAttr; }

class Merger {
 public:
  Merger(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), merged_into_(graph.num_nodes(), kNoNode) {}

  absl::StatusOr<bool> Run() {
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
    for (NodeId id : order) {
      RedirectInputs(id);
      if (MayMerge(graph_.node(id))) Visit(id);
    }
    if (merged_.empty()) return false;
    for (NodeId id : order) RedirectInputs(id);  // edges that close loops lead to nodes that came later
    for (NodeId id : merged_) {
      Absorb(graph_.mutable_node(merged_into_[id]), graph_.node(id));
      graph_.RemoveNode(id);
    }
    return true;
  }

 private:
  bool MayMerge(const Node& node) const {
    if (IsConst(node)) {
      const TensorLiteralPtr value = ConstValue(node);
      return value != nullptr && value->content.size() <= kLargestComparedLiteral && value->strings.size() <= 64;
    }
    // Nodes without inputs make something up: placeholders, random numbers, files.
    return node.num_data_inputs > 0 && IsPure(graph_, node);
  }

  void RedirectInputs(NodeId id) {
    for (Endpoint& input : graph_.mutable_node(id).inputs) {
      if (merged_into_[input.node] != kNoNode) input.node = merged_into_[input.node];
    }
  }

  // One candidate per hash value: a collision only loses an opportunity (F4).
  void Visit(NodeId id) {
    const auto [it, is_new] = by_hash_.try_emplace(HashOf(graph_.node(id)), id);
    if (is_new) return;
    const NodeId first = it->second;
    if (context_.preserve.contains(id) || !AreSame(graph_.node(first), graph_.node(id))) return;
    merged_into_[id] = first;
    merged_.push_back(id);
  }

  NodeInputs ComparableInputs(const Node& node) const {
    NodeInputs inputs = node.inputs;
    if (node.schema->commutative) std::sort(inputs.begin(), inputs.begin() + node.num_data_inputs);
    std::sort(inputs.begin() + node.num_data_inputs, inputs.end());
    return inputs;
  }

  size_t HashOf(const Node& node) const {
    size_t hash = absl::HashOf(node.op, node.num_data_inputs, ComparableInputs(node), node.output_types.size());
    for (const auto& [name, value] : node.attrs) {
      if (!IsIgnoredAttr(name)) hash = absl::HashOf(hash, name, AttrHash(value));
    }
    return hash;
  }

  bool AreSame(const Node& a, const Node& b) const {
    return a.op == b.op && a.requested_device == b.requested_device && AreFixedAlike(a, b) &&
           a.num_data_inputs == b.num_data_inputs && a.output_types == b.output_types && SameAttrs(a, b) &&
           ComparableInputs(a) == ComparableInputs(b);
  }

  // Nodes that a placement file puts apart stay apart.
  bool AreFixedAlike(const Node& a, const Node& b) const {
    const std::string* device_a = FixedDevice(context_.request->placement, a);
    const std::string* device_b = FixedDevice(context_.request->placement, b);
    if (device_a == nullptr || device_b == nullptr) return device_a == device_b;
    return *device_a == *device_b;
  }

  static bool SameAttrs(const Node& a, const Node& b) {
    auto i = a.attrs.begin();
    auto j = b.attrs.begin();
    while (true) {
      while (i != a.attrs.end() && IsIgnoredAttr(i->first)) ++i;
      while (j != b.attrs.end() && IsIgnoredAttr(j->first)) ++j;
      if (i == a.attrs.end() || j == b.attrs.end()) return i == a.attrs.end() && j == b.attrs.end();
      if (i->first != j->first || !AttrEquals(i->second, j->second)) return false;
      ++i;
      ++j;
    }
  }

  Graph& graph_;
  const PassContext& context_;
  std::vector<NodeId> merged_into_;
  std::vector<NodeId> merged_;
  absl::flat_hash_map<size_t, NodeId> by_hash_;
};

}  // namespace

absl::StatusOr<bool> MergeCommonSubexpressions(Graph& graph, const PassContext& context) {
  return Merger(graph, context).Run();
}

}  // namespace thalweg
