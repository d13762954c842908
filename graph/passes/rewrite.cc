#include "thalweg/graph/passes/rewrite.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "thalweg/graph/lowering/function_body.h"

namespace thalweg {
namespace {

bool IsOpaqueType(DType type) { return IsRef(type) || type == DType::kResource || type == DType::kVariant; }

}  // namespace

bool IsControlFlow(const Node& node) {
  static const auto& ops = *new absl::flat_hash_set<absl::string_view>{
      "Switch",  "RefSwitch", "_SwitchN", "Merge",         "RefMerge",         "Enter",     "RefEnter",      "Exit",
      "RefExit", "RefSelect", "LoopCond", "NextIteration", "RefNextIteration", "_XlaMerge", "ControlTrigger"};
  return ops.contains(node.op);
}

bool MayLeaveOutputsEmpty(const Node& node) { return node.is("Switch") || node.is("RefSwitch") || node.is("_SwitchN"); }

bool IsPure(const Graph& graph, const Node& node) {
  if (node.schema == nullptr || node.schema->stateful || node.schema->role != OpRole::kNormal || IsControlFlow(node))
    return false;
  if (node.num_outputs() == 0) return false;
  if (TakesFunctions(*node.schema)) return false;
  for (DType type : node.output_types) {
    if (IsOpaqueType(type)) return false;
  }
  for (Endpoint input : node.data_inputs()) {
    if (IsOpaqueType(graph.node(input.node).output_types[input.port])) return false;
  }
  return true;
}

bool IsConst(const Node& node) {
  return node.schema != nullptr && node.schema->role == OpRole::kConstant && node.num_outputs() == 1;
}

TensorLiteralPtr ConstValue(const Node& node) {
  if (!IsConst(node)) return nullptr;
  const Attr* value = node.attrs.Find("value");
  const auto* literal = value == nullptr ? nullptr : std::get_if<TensorLiteralPtr>(value);
  return literal == nullptr ? nullptr : *literal;
}

TensorLiteralPtr FreeConstInput(const Graph& graph, const Node& node, int i) {
  if (i >= node.num_data_inputs) return nullptr;
  const Node& producer = graph.node(node.inputs[i].node);
  return producer.inputs.empty() ? ConstValue(producer) : nullptr;
}

void Absorb(Node& into, const Node& gone) {
  constexpr size_t kMostOrigins = 256;
  auto also = into.also == nullptr ? std::make_shared<std::vector<NodeId>>()
                                   : std::make_shared<std::vector<NodeId>>(*into.also);
  const auto add = [&](NodeId origin) {
    if (origin == kNoNode || origin == into.origin || also->size() >= kMostOrigins) return;
    if (std::find(also->begin(), also->end(), origin) == also->end()) also->push_back(origin);
  };
  add(gone.origin);
  if (gone.also != nullptr) {
    for (NodeId origin : *gone.also) add(origin);
  }
  if (!also->empty()) into.also = std::move(also);
}

bool RemoveUnreachable(Graph& graph, const absl::flat_hash_set<NodeId>& roots) {
  std::vector<bool> reached(graph.num_nodes(), false);
  std::vector<NodeId> work;
  const auto reach = [&](NodeId id) {
    if (reached[id]) return;
    reached[id] = true;
    work.push_back(id);
  };
  for (NodeId root : roots) {
    if (!graph.node(root).removed) reach(root);
  }
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (Endpoint input : graph.node(id).inputs) reach(input.node);
  }
  bool removed_any = false;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (reached[id] || graph.node(id).removed) continue;
    graph.RemoveNode(id);
    removed_any = true;
  }
  return removed_any;
}

Bypass::Bypass(Graph& graph, const absl::flat_hash_set<NodeId>& preserve)
    : graph_(graph),
      preserve_(preserve),
      has_control_readers_(graph.num_nodes(), false),
      replaced_by_(graph.num_nodes()) {
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    for (Endpoint input : node.control_inputs()) has_control_readers_[input.node] = true;
  }
}

bool Bypass::Offer(NodeId id, Endpoint source) {
  const Node& node = graph_.node(id);
  if (node.num_outputs() != 1 || !node.control_inputs().empty() || preserve_.contains(id)) return false;
  source = Resolve(source);
  const Node& producer = graph_.node(source.node);
  if (source.node == id || IsRef(producer.output_types[source.port]) ||
      producer.output_types[source.port] != node.output_types[0]) {
    return false;
  }
  if (has_control_readers_[id]) {
    if (MayLeaveOutputsEmpty(producer)) return false;
    has_control_readers_[source.node] = true;
  }
  replaced_by_[id] = source;
  taken_.push_back(id);
  return true;
}

Endpoint Bypass::Resolve(Endpoint e) const {
  if (e.node >= static_cast<NodeId>(replaced_by_.size()) || replaced_by_[e.node].node == kNoNode) return e;
  const Endpoint source = replaced_by_[e.node];
  return e.is_control() ? Endpoint{source.node, kControlPort} : source;
}

bool Bypass::Apply() {
  if (taken_.empty()) return false;
  for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
    if (graph_.node(id).removed) continue;
    for (Endpoint& input : graph_.mutable_node(id).inputs) input = Resolve(input);
  }
  for (NodeId id : taken_) {
    Absorb(graph_.mutable_node(replaced_by_[id].node), graph_.node(id));
    graph_.RemoveNode(id);
  }
  return true;
}

}  // namespace thalweg
