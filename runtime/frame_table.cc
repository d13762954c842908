#include "thalweg/runtime/frame_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/dead_cause.h"
#include "thalweg/runtime/step_report.h"

namespace thalweg {

void FrameTable::Start(StepState* step, uint64_t first_key, ReadyNodes* ready) {
  std::lock_guard<std::mutex> lock(mutex_);
  step_ = step;
  last_key_ = first_key;
  root_ = NewFrame(kRootFrame, nullptr);
  Iteration* iteration = root_->ring[0];
  for (int32_t node : frames_.roots) ready->push_back({iteration, node});
  iteration->outstanding.store(static_cast<int32_t>(frames_.roots.size()), std::memory_order_relaxed);
}

FrameInstance* FrameTable::NewFrame(int32_t frame, Iteration* parent) {
  const FramePlanFrame& plan = frames_.frames[frame];
  std::vector<FrameInstance*>& idle = idle_frames_[frame];
  if (idle.empty()) {
    instances_.push_back(std::make_unique<FrameInstance>());
    FrameInstance* made = instances_.back().get();
    made->frame = frame;
    made->exit_delivered = std::make_unique<std::atomic<uint8_t>[]>(plan.exits.size());
    idle.push_back(made);
  }
  FrameInstance* instance = idle.back();
  idle.pop_back();
  instance->step = step_;
  instance->parent = parent;
  instance->lowest = 0;
  instance->enters_missing = plan.num_enters;
  for (size_t i = 0; i < plan.exits.size(); ++i) instance->exit_delivered[i].store(0, std::memory_order_relaxed);
  instance->highest = 0;
  // Windows may be huge where hardly an iteration overlaps another, so the ring grows as it is needed.
  if (instance->ring.empty()) instance->ring.resize(1);
  instance->ring[0] = NewIteration(instance);
  return instance;
}

Iteration* FrameTable::NewIteration(FrameInstance* frame) {
  const FramePlanFrame& plan = frames_.frames[frame->frame];
  std::vector<Iteration*>& idle = idle_iterations_[frame->frame];
  if (idle.empty()) {
    iterations_.push_back(std::make_unique<Iteration>());
    Iteration* made = iterations_.back().get();
    made->values = std::make_unique<Value[]>(plan.num_slots);
    made->counters = std::make_unique<std::atomic<uint64_t>[]>(plan.nodes.size());
    made->readers_left = std::make_unique<std::atomic<int32_t>[]>(plan.shared_slots.empty() ? 0 : plan.num_slots);
    made->children.assign(plan.num_children, nullptr);
    for (const auto& [slot, tensor] : plan.constants) made->values[slot].tensor = tensor;
    made->readers = plan_.readers.data() + plan.first_slot;
    idle.push_back(made);
  }
  Iteration* iteration = idle.back();
  idle.pop_back();
  iteration->frame = frame;
  iteration->number = frame->highest;
  latest_[frame->frame].store(frame->highest, std::memory_order_relaxed);
  iteration->key = frame->frame == kRootFrame ? last_key_ : ++last_key_;
  iteration->outstanding.store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < plan.initial.size(); ++i) iteration->counters[i].store(plan.initial[i], std::memory_order_relaxed);
  for (const auto& [slot, readers] : plan.shared_slots) iteration->readers_left[slot].store(readers, std::memory_order_relaxed);
  return iteration;
}

bool FrameTable::ArriveAtMerge(std::atomic<uint64_t>& counter, const FrameNode& target, const FrameEdge& edge, bool dead, bool from_enter,
                               absl::Status* status) {
  const uint64_t all_dead = static_cast<uint64_t>(target.num_values);
  uint64_t old = counter.load(std::memory_order_acquire);
  while (true) {
    uint64_t next = old;
    const bool was_live = (Counter::Pending(old) & 1) == 0;
    if (edge.merge_input < 0) {
      next -= 2;  // dead or live alike (A27)
    } else if (dead) {
      // A dead Enter says that no value will ever come, and that is remembered in the count (A28, I1).
      const uint64_t more = from_enter ? all_dead - std::min(all_dead, Counter::Dead(old)) : 1;
      next += more * Counter::kOneDead;
    } else if (was_live) {
      *status = absl::InternalError(absl::StrCat("inputs ", Counter::Index(old), " and ", edge.merge_input, " both have a value; a Merge takes one (A29)"));
      return false;
    } else if (Counter::Dead(old) >= all_dead) {
      return false;
    } else {
      next = (next & ~uint64_t{1}) | (static_cast<uint64_t>(edge.merge_input) << Counter::kIndexShift);
    }
    if (frames_.one_thread) counter.store(next, std::memory_order_relaxed);
    else if (!counter.compare_exchange_weak(old, next, std::memory_order_acq_rel)) continue;
    const auto is_ready = [all_dead](uint64_t word) {
      return Counter::Pending(word) == 0 || (Counter::Pending(word) == 1 && Counter::Dead(word) >= all_dead);
    };
    return is_ready(next) && !is_ready(old);
  }
}

bool FrameTable::Arrive(Iteration* iteration, const FrameEdge& edge, bool dead, bool from_enter, absl::Status* status) {
  std::atomic<uint64_t>& counter = iteration->counters[edge.local];
  if (edge.to_merge) return ArriveAtMerge(counter, frames_.nodes[edge.target], edge, dead, from_enter, status);
  const uint64_t change = dead ? Counter::kOneDead - 1 : ~uint64_t{0};
  return Counter::Pending(Add(counter, change)) == 0;
}

absl::Status FrameTable::Deliver(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready) {
  const FrameNode& from = frames_.nodes[node];
  const Value* outputs = iteration->values.get() + OutputSlot(node);
  const FrameEdge* edges = frames_.edges.data() + from.first_edge;
  absl::Status status;
  int32_t added = 0;
  for (int32_t i = 0; i < from.num_edges; ++i) {
    const bool edge_dead = dead || (edges[i].output >= 0 && !outputs[edges[i].output].present());
    if (!Arrive(iteration, edges[i], edge_dead, from.child >= 0, &status)) continue;
    ready->push_back({iteration, edges[i].target, node});
    ++added;
  }
  if (added > 0) Add(iteration->outstanding, added);
  return status;
}

absl::Status FrameTable::Propagate(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready) {
  switch (plan_.nodes[node].kind) {
    case NodeKind::kEnter:
      return PropagateEnter(iteration, node, dead, ready);
    case NodeKind::kExit:
      return PropagateExit(iteration, node, dead, ready);
    case NodeKind::kNextIteration:
      return dead ? absl::OkStatus() : PropagateNextIteration(iteration, node, ready);
    default:
      return Deliver(iteration, node, dead, ready);
  }
}

Value FrameTable::TakeInput(Iteration* iteration, int32_t node) const {
  const uint32_t input = plan_.nodes[node].first_input;
  Value& value = iteration->values[plan_.input_slots[input]];
  return plan_.sole_use[input] ? std::move(value) : value;
}

absl::Status FrameTable::StoreAndDeliver(Iteration* iteration, HeldValue held, ReadyNodes* ready) {
  if (!held.dead) iteration->values[OutputSlot(held.node)] = std::move(held.value);
  return Deliver(iteration, held.node, held.dead, ready);
}

absl::Status FrameTable::PropagateEnter(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready) {
  const FrameNode& enter = frames_.nodes[node];
  HeldValue held{node, dead, dead ? Value() : TakeInput(iteration, node)};
  const std::unique_lock<std::mutex> lock = Lock();
  FrameInstance*& instance = iteration->children[frames_.frames[enter.child].ordinal];
  if (instance == nullptr) {  // the first Enter that finishes makes the frame, live or dead (A37)
    instance = NewFrame(enter.child, iteration);
    Add(iteration->outstanding, 1);
  }
  FrameInstance* frame = instance;
  absl::Status status;
  const int64_t last = enter.is_constant_enter ? frame->highest : 0;
  for (int64_t k = 0; k <= last; ++k) {  // the first iteration lives as long as an Enter is missing (A39)
    status.Update(StoreAndDeliver(Place(*frame, k), held, ready));
  }
  if (enter.is_constant_enter) frame->invariants.push_back(std::move(held));
  --frame->enters_missing;
  Iteration* first = frame->ring[0];
  if (frame->enters_missing == 0 && frame->lowest == 0 && MayRetire(*first)) status.Update(RetireFrom(first, ready));
  return status;
}

absl::Status FrameTable::PropagateExit(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready) {
  Iteration* parent = iteration->frame->parent;
  Value value = dead ? Value() : TakeInput(iteration, node);
  if (parent == nullptr) parent = iteration;  // an Exit outside of any loop
  else if (dead) return absl::OkStatus();     // only the end of the frame tells that no iteration gave a value (A41)
  else if (iteration->frame->exit_delivered[frames_.nodes[node].exit_ordinal].exchange(1, std::memory_order_acq_rel) != 0) {
    return absl::InternalError("more than one iteration handed a value out of the loop; a Switch must let only the last do so");
  }
  if (!dead) parent->values[OutputSlot(node)] = std::move(value);
  return Deliver(parent, node, dead, ready);
}

absl::Status FrameTable::PropagateNextIteration(Iteration* iteration, int32_t node, ReadyNodes* ready) {
  HeldValue held{node, false, TakeInput(iteration, node)};
  const std::unique_lock<std::mutex> lock = Lock();
  FrameInstance* frame = iteration->frame;
  const int64_t next = iteration->number + 1;
  if (next > frame->highest) {
    if (Live(*frame) >= frames_.frames[frame->frame].window) {  // A42
      frame->deferred.push_back(std::move(held));
      return absl::OkStatus();
    }
    THALWEG_RETURN_IF_ERROR(BeginIteration(frame, ready));
  }
  return StoreAndDeliver(Place(*frame, next), std::move(held), ready);
}

absl::Status FrameTable::BeginIteration(FrameInstance* frame, ReadyNodes* ready) {
  ++frame->highest;
  const int64_t live = Live(*frame);
  if (live > static_cast<int64_t>(frame->ring.size())) {
    std::vector<Iteration*> ring(std::min<int64_t>(2 * live, std::max<int64_t>(live, frames_.frames[frame->frame].window)));
    for (int64_t k = frame->lowest; k < frame->highest; ++k) {
      ring[k % static_cast<int64_t>(ring.size())] = Place(*frame, k);
    }
    frame->ring = std::move(ring);
  }
  Iteration* iteration = NewIteration(frame);
  Place(*frame, frame->highest) = iteration;
  absl::Status status;
  for (const HeldValue& held : frame->invariants) status.Update(StoreAndDeliver(iteration, held, ready));
  return status;
}

bool FrameTable::MayRetire(const Iteration& iteration) const {
  if (iteration.outstanding.load(std::memory_order_acquire) != 0) return false;
  const FrameInstance& frame = *iteration.frame;
  if (frame.parent == nullptr) return false;  // the root's lasts until the step is over
  return iteration.number == frame.lowest && frame.enters_missing == 0;
}

absl::Status FrameTable::Finish(Iteration* iteration, ReadyNodes* ready) {
  const uint64_t generation = iteration->generation;
  if (Add(iteration->outstanding, -1) != 0) return absl::OkStatus();
  const std::unique_lock<std::mutex> lock = Lock();
  const bool still_alive = iteration->generation == generation;
  return still_alive && MayRetire(*iteration) ? RetireFrom(iteration, ready) : absl::OkStatus();
}

// Retires `iteration` and whatever can retire after it: later iterations, the frame, the iteration around it (A44, A44b).
absl::Status FrameTable::RetireFrom(Iteration* iteration, ReadyNodes* ready) {
  absl::Status status;
  while (iteration != nullptr) {
    FrameInstance* frame = iteration->frame;
    if (frames_.check_completion) status.Update(CheckCompleted(*iteration));
    Recycle(iteration);
    ++frame->lowest;
    if (!frame->deferred.empty()) {
      std::vector<HeldValue> deferred = std::exchange(frame->deferred, {});
      status.Update(BeginIteration(frame, ready));
      for (HeldValue& held : deferred) {
        status.Update(StoreAndDeliver(Place(*frame, frame->highest), std::move(held), ready));
      }
    }
    if (frame->lowest > frame->highest) {
      iteration = EndFrame(frame, ready);
    } else {
      iteration = Place(*frame, frame->lowest);
      if (!MayRetire(*iteration)) iteration = nullptr;
    }
  }
  return status;
}

void FrameTable::Recycle(Iteration* iteration) {
  ++iteration->generation;
  for (uint32_t slot : frames_.frames[iteration->frame->frame].cleared) {
    if (iteration->values[slot].present()) iteration->values[slot].Clear();
  }
  std::fill(iteration->children.begin(), iteration->children.end(), nullptr);
  idle_iterations_[iteration->frame->frame].push_back(iteration);
}

// At the end of the step: also what recycled iterations keep.
void FrameTable::ClearValues(Iteration* iteration) {
  const FramePlanFrame& plan = frames_.frames[iteration->frame->frame];
  for (uint32_t slot = static_cast<uint32_t>(plan.constants.size()); slot < plan.num_slots; ++slot) iteration->values[slot].Clear();
}

// Tells the frame around it which Exits gave no value; returns the iteration around it if that may retire now.
Iteration* FrameTable::EndFrame(FrameInstance* frame, ReadyNodes* ready) {
  const FramePlanFrame& plan = frames_.frames[frame->frame];
  Iteration* parent = frame->parent;
  for (size_t i = 0; i < plan.exits.size(); ++i) {
    if (frame->exit_delivered[i].load(std::memory_order_acquire) == 0) Deliver(parent, plan.exits[i], /*dead=*/true, ready).IgnoreError();
  }
  frame->invariants.clear();
  parent->children[plan.ordinal] = nullptr;
  idle_frames_[frame->frame].push_back(frame);
  return Add(parent->outstanding, -1) == 0 && MayRetire(*parent) ? parent : nullptr;
}

void FrameTable::Clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (std::vector<Iteration*>& idle : idle_iterations_) idle.clear();
  for (std::vector<FrameInstance*>& idle : idle_frames_) idle.clear();
  for (const auto& instance : instances_) {
    instance->invariants.clear();
    instance->deferred.clear();
    idle_frames_[instance->frame].push_back(instance.get());
  }
  for (const auto& iteration : iterations_) {
    Recycle(iteration.get());
    ClearValues(iteration.get());
  }
  root_ = nullptr;
}

int64_t FrameTable::live_iterations() const {
  std::lock_guard<std::mutex> lock(mutex_);
  int64_t live = static_cast<int64_t>(iterations_.size());
  for (const std::vector<Iteration*>& idle : idle_iterations_) live -= static_cast<int64_t>(idle.size());
  return live;
}

bool FrameTable::IsComplete() const {
  if (live_iterations() != 1) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  const Iteration& iteration = *root_->ring[0];
  for (int32_t node : frames_.frames[kRootFrame].nodes) {
    if (!HasCompleted(iteration, node)) return false;
  }
  return true;
}

bool FrameTable::WasDead(const Iteration& iteration, int32_t node) const {
  const FrameNode& n = frames_.nodes[node];
  if (!n.passed_over) return IsDead(iteration, node);
  if (n.source < 0) return false;
  if (IsDead(iteration, n.source)) return true;
  const uint64_t counter = iteration.counters[frames_.nodes[n.source].local].load(std::memory_order_acquire);
  return plan_.nodes[n.source].kind == NodeKind::kSwitch && n.source_output >= 0 && Counter::Index(counter) != n.source_output;
}

std::string FrameTable::ExplainDead(const Iteration& iteration, int32_t node) const {
  std::vector<int32_t> position(plan_.graph_ids.size());
  for (size_t i = 0; i < plan_.graph_ids.size(); ++i) position[plan_.graph_ids[i]] = static_cast<int32_t>(i);
  // The iteration of a node's frame that is around (or is) the one asked about; null if the node is in a frame inside.
  const auto iteration_of = [&](NodeId id) -> const Iteration* {
    const Iteration* at = &iteration;
    while (at != nullptr && at->frame->frame != frames_.nodes[position[id]].frame) at = at->frame->parent;
    return at;
  };
  return ExplainDeadness(
      plan_, plan_.graph_ids[node],
      [&](NodeId id) {
        const Iteration* at = iteration_of(id);
        return at != nullptr && WasDead(*at, position[id]);
      },
      [&](NodeId id) {
        const Iteration* at = iteration_of(id);
        return at == nullptr ? int64_t{0} : at->number;
      });
}

std::string FrameTable::DescribeNode(const Iteration& iteration, int32_t node) const {
  const std::string name = NodeName(plan_, plan_.nodes[node]);
  if (iteration.frame->frame == kRootFrame) return name;
  return absl::StrCat(name, " in iteration ", iteration.number, " of frame '", plan_.frames[iteration.frame->frame].name, "'");
}

bool FrameTable::IsAlive(const Iteration& iteration) const {
  const FrameInstance& frame = *iteration.frame;
  return iteration.number >= frame.lowest && iteration.number <= frame.highest && Place(frame, iteration.number) == &iteration;
}

std::string FrameTable::DescribeIteration(uint64_t key) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& iteration : iterations_) {
    if (iteration->key != key || iteration->frame->frame == kRootFrame || !IsAlive(*iteration)) continue;
    return absl::StrCat(" in iteration ", iteration->number, " of frame '", plan_.frames[iteration->frame->frame].name, "'");
  }
  return "";
}

std::vector<std::string> FrameTable::DescribeWaiting(size_t limit) const {
  // The step stands still meanwhile.
  constexpr size_t kMostLookedAt = 200'000;
  size_t looked_at = 0;
  std::vector<std::string> lines;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto waits = [&](const Iteration& iteration, int32_t node) {
    return Counter::Pending(iteration.counters[frames_.nodes[node].local].load(std::memory_order_acquire)) > 0;
  };
  for (const auto& iteration : iterations_) {
    if (!IsAlive(*iteration)) continue;
    for (int32_t node : frames_.frames[iteration->frame->frame].nodes) {
      if (++looked_at > kMostLookedAt) return lines;
      if (!waits(*iteration, node)) continue;
      // Only what waits for something that has started says where it hangs.
      for (int32_t i = plan_.predecessor_offsets[node]; i < plan_.predecessor_offsets[node + 1]; ++i) {
        int32_t p = plan_.predecessors[i];
        if (frames_.nodes[p].passed_over) p = frames_.nodes[p].source;
        if (p < 0) continue;
        if (frames_.nodes[p].frame == frames_.nodes[node].frame && waits(*iteration, p)) continue;
        lines.push_back(absl::StrCat(DescribeNode(*iteration, node), " waits for ", NodeName(plan_, plan_.nodes[p])));
        break;
      }
      if (lines.size() >= limit) return lines;
    }
  }
  return lines;
}

bool FrameTable::HasCompleted(const Iteration& iteration, int32_t node) const {
  const FrameNode& n = frames_.nodes[node];
  const uint64_t counter = iteration.counters[n.local].load(std::memory_order_acquire);
  return Counter::Pending(counter) == 0 || (n.is_merge && Counter::Pending(counter) == 1 && Counter::Dead(counter) >= static_cast<uint64_t>(n.num_values));
}

// What a node waits for may lawfully stay away: a dead NextIteration hands nothing on (A41), an Enter that is no constant feeds the first
// iteration only (A38), and a frame that no Enter reached has no Exits.
bool FrameTable::MayNeverArrive(const Iteration& iteration, int32_t node) const {
  const Graph& graph = plan_.compiled->graph;
  for (const Endpoint input : graph.node(plan_.graph_ids[node]).inputs) {
    if (HasRole(graph.node(input.node), OpRole::kNextIteration)) return true;
  }
  for (int32_t i = plan_.predecessor_offsets[node]; i < plan_.predecessor_offsets[node + 1]; ++i) {
    int32_t p = plan_.predecessors[i];
    if (frames_.nodes[p].passed_over) p = frames_.nodes[p].source;
    if (p < 0) continue;
    const FrameNode& from = frames_.nodes[p];
    if (from.child >= 0 && from.child == frames_.nodes[node].frame) {
      if (iteration.number > 0 && !from.is_constant_enter) return true;
    } else if (from.frame == frames_.nodes[node].frame) {
      if (!HasCompleted(iteration, p)) return true;
    } else if (frames_.frames[from.frame].parent == iteration.frame->frame && iteration.children[frames_.frames[from.frame].ordinal] == nullptr) {
      // An Exit. The frame has ended, and told about its Exits, or has never begun.
      for (const int32_t enter : frames_.frames[iteration.frame->frame].nodes) {
        if (frames_.nodes[enter].child == from.frame && !HasCompleted(iteration, enter)) return true;
      }
    }
  }
  return false;
}

absl::Status FrameTable::CheckCompleted(const Iteration& iteration) const {
  for (const int32_t node : frames_.frames[iteration.frame->frame].nodes) {
    if (HasCompleted(iteration, node) || MayNeverArrive(iteration, node)) continue;
    return absl::InternalError(absl::StrCat("the iteration ended although ", DescribeNode(iteration, node), " has not run and everything it waits for has (I2)"));
  }
  return absl::OkStatus();
}

}  // namespace thalweg
