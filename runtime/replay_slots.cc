#include "thalweg/runtime/replay_slots.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace thalweg {
namespace {

class SlotSharer {
 public:
  SlotSharer(const FlowGraph& graph, absl::Span<const NodeId> order, Plan* plan)
      : graph_(graph), order_(order), plan_(*plan), position_(order.size()), readers_(plan->num_slots), place_(plan->num_slots),
        ends_elsewhere_(plan->num_slots, 0) {
    for (int32_t slot = 0; slot < plan->num_slots; ++slot) place_[slot] = static_cast<uint32_t>(slot);
    for (size_t n = 0; n < order.size(); ++n) position_[order[n]] = static_cast<int32_t>(n);
  }

  void Share() {
    FindReaders();
    for (PlanNode& node : plan_.nodes) {
      if (node.kind == NodeKind::kSwitch && LeavesInputInPlace(node)) ShareSwitch(&node);
    }
    for (PlanNode& node : plan_.nodes) {
      if (node.kind == NodeKind::kMerge) ShareLoopVariable(&node);
    }
    MoveReleases();
    MoveSkippedReleases();
    for (uint32_t& slot : plan_.input_slots) slot = place_[slot];
    for (PlanNode& node : plan_.nodes) {
      if (node.kind == NodeKind::kEnter || node.kind == NodeKind::kNextIteration) node.first_output = place_[node.first_output];
    }
  }

 private:
  int32_t PositionOf(const PlanNode& node) const { return static_cast<int32_t>(&node - plan_.nodes.data()); }
  GuardId GuardOf(int32_t position) const { return plan_.guards.of_node[order_[position]]; }
  uint32_t InputSlot(const PlanNode& node) const { return plan_.input_slots[node.first_input]; }

  void FindReaders() {
    for (const PlanNode& node : plan_.nodes) {
      for (uint32_t i = 0; i < node.num_inputs; ++i) readers_[plan_.input_slots[node.first_input + i]].push_back(PositionOf(node));
    }
  }

  static bool HasReferences(const PlanNode& node) {
    const std::vector<DType>& types = node.info->output_types();
    return node.has_dereferences || std::any_of(types.begin(), types.end(), IsRef);
  }

  // Its readers must run exactly if their branch is taken: if one could be skipped although it is, or looked for a value
  // although it is not, it would take the value of the other branch for its own.
  bool LeavesInputInPlace(const PlanNode& node) const {
    if (!plan_.last_use[node.first_input] || HasReferences(node)) return false;
    const std::vector<GuardId>& flags = plan_.guards.branch_flags[order_[PositionOf(node)]];
    for (uint32_t branch = 0; branch < node.num_outputs; ++branch) {
      for (int32_t reader : readers_[node.first_output + branch]) {
        if (plan_.nodes[reader].kind == NodeKind::kMerge || GuardOf(reader) != flags[branch]) return false;
      }
    }
    return true;
  }

  void ShareSwitch(PlanNode* node) {
    node->kind = NodeKind::kSwitchInPlace;
    // Earlier nodes come first, so the input's own place is settled.
    const uint32_t place = place_[InputSlot(*node)];
    for (uint32_t slot = node->first_output; slot < node->first_output + node->num_outputs; ++slot) {
      place_[slot] = place;
      ends_elsewhere_[slot] = 1;
    }
  }

  void ShareLoopVariable(PlanNode* merge) {
    const NodeId id = order_[PositionOf(*merge)];
    const std::vector<Endpoint>& data = graph_.nodes[id].data;
    if (data.size() != 2 || plan_.guards.flag_of_node[id] != kAlways || HasReferences(*merge)) return;
    const int first = graph_.nodes[data[0].node].role == OpRole::kEnter ? 0 : 1;
    if (graph_.nodes[data[first].node].role != OpRole::kEnter || graph_.nodes[data[1 - first].node].role != OpRole::kNextIteration) return;
    const PlanNode& enter = plan_.nodes[position_[data[first].node]];
    const PlanNode& next = plan_.nodes[position_[data[1 - first].node]];
    if (graph_.nodes[data[first].node].is_constant_enter || HasReferences(enter) || HasReferences(next)) return;
    if (readers_[enter.first_output].size() != 1 || readers_[next.first_output].size() != 1) return;
    const uint32_t slot = merge->first_output;
    if (readers_[slot].empty() || !readers_[slot + 1].empty() || !AllReadBefore(slot, PositionOf(next))) return;
    for (uint32_t other : {enter.first_output, next.first_output}) {
      place_[other] = slot;
      ends_elsewhere_[other] = 1;
    }
    merge->kind = NodeKind::kNoOp;
    merge->num_inputs = 0;
    merge->num_outputs = 0;
  }

  // Whether the NextIteration at `next` may overwrite the value that a Merge has put into `slot` for this iteration.
  bool AllReadBefore(uint32_t slot, int32_t next) const {
    std::vector<uint32_t> places = {slot};
    while (!places.empty()) {
      const uint32_t read = places.back();
      places.pop_back();
      for (int32_t reader : readers_[read]) {
        const PlanNode& node = plan_.nodes[reader];
        if (node.kind == NodeKind::kMerge) return false;
        if (reader > next && (read == slot || !AreExclusive(GuardOf(reader), GuardOf(next)))) return false;
        if (node.kind != NodeKind::kSwitchInPlace || InputSlot(node) != read) continue;
        for (uint32_t branch = 0; branch < node.num_outputs; ++branch) places.push_back(node.first_output + branch);
      }
    }
    return true;
  }

  // Different branches of one choice.
  bool AreExclusive(GuardId a, GuardId b) const {
    const Guard& one = plan_.guards.guards[a];
    const Guard& other = plan_.guards.guards[b];
    return one.branches > 0 && one.branches == other.branches && one.parent == other.parent && one.predicate == other.predicate &&
           one.branch != other.branch;
  }

  // Whether the value of `slot` stays in its place, under another name, when `node`, its last reader, has run.
  bool StaysInPlace(const PlanNode& node, uint32_t slot) const {
    switch (node.kind) {
      case NodeKind::kSwitchInPlace:
        return slot == InputSlot(node) || (slot >= node.first_output && slot < node.first_output + node.num_outputs);
      case NodeKind::kNoOp:
        return true;  // a Merge of a loop variable
      case NodeKind::kNextIteration:
        return place_[slot] == place_[node.first_output];
      default:
        return false;
    }
  }

  void MoveReleases() {
    const std::vector<uint32_t> releases = std::exchange(plan_.releases, {});
    for (PlanNode& node : plan_.nodes) {
      const auto begin = releases.begin() + node.first_release;
      const auto end = begin + node.num_releases;
      node.first_release = static_cast<uint32_t>(plan_.releases.size());
      std::for_each(begin, end, [&](uint32_t slot) {
        if (!StaysInPlace(node, slot)) plan_.releases.push_back(place_[slot]);
      });
      node.num_releases = static_cast<uint32_t>(plan_.releases.size()) - node.first_release;
    }
  }

  // What skipped runs let go. They have nothing to let go of what a Switch leaves in place for their branch alone.
  void MoveSkippedReleases() {
    const std::vector<uint32_t> slots = std::exchange(plan_.replay.slots, {});
    const auto move = [&](ReplayRange* range) {
      const int32_t begin = static_cast<int32_t>(plan_.replay.slots.size());
      for (int32_t i = range->begin; i < range->end; ++i) {
        if (!ends_elsewhere_[slots[i]]) plan_.replay.slots.push_back(place_[slots[i]]);
      }
      *range = {begin, static_cast<int32_t>(plan_.replay.slots.size())};
    };
    for (ReplayRun& run : plan_.replay.runs) move(&run.released);
    for (ReplayFrame& frame : plan_.replay.frames) move(&frame.invariants);
  }

  const FlowGraph& graph_;
  const absl::Span<const NodeId> order_;
  Plan& plan_;
  std::vector<int32_t> position_;               // by id
  std::vector<std::vector<int32_t>> readers_;   // by slot: positions
  std::vector<uint32_t> place_;                 // by slot: where its value lies
  std::vector<uint8_t> ends_elsewhere_;         // by slot: skipped readers do not release it
};

}  // namespace

void ShareReplaySlots(const FlowGraph& graph, absl::Span<const NodeId> order, Plan* plan) { SlotSharer(graph, order, plan).Share(); }

}  // namespace thalweg
