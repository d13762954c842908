// FrameTable: the frames and iterations that are alive in one step, with their values and counters.
//
// Threading: counters and values follow the rules of the edges (a value is stored before its edge is counted, A17), so activation
// within an iteration takes no lock. What makes or ends iterations and frames holds the table's mutex; iterations retire in order
// (A43). Objects are recycled, also between steps, and freed with the table, so a stale pointer is never dangling: generations
// tell.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "thalweg/ops/value.h"
#include "thalweg/runtime/plan.h"

namespace thalweg {

class StepState;
struct FrameInstance;

struct Iteration {
  FrameInstance* frame = nullptr;
  const int32_t* readers = nullptr;                     // by slot, of Plan::readers
  int64_t number = 0;
  uint64_t key = 0;                                     // KernelContext::iteration_key; its own within a step
  uint64_t generation = 0;                              // counts its lives; guarded by the table's mutex
  std::atomic<int32_t> outstanding{0};                  // ready or running nodes, and child frames
  std::unique_ptr<Value[]> values;                      // by slot of the frame
  std::unique_ptr<std::atomic<uint64_t>[]> counters;    // by local node
  std::unique_ptr<std::atomic<int32_t>[]> readers_left; // by slot; of shared slots only
  std::vector<FrameInstance*> children;                 // by ordinal; guarded by the table's mutex
};

// A value on its way into an iteration that does not exist yet, or into all of them.
struct HeldValue {
  int32_t node = 0;  // position of the NextIteration or constant Enter
  bool dead = false;
  Value value;
};

struct FrameInstance {
  StepState* step = nullptr;
  int32_t frame = 0;                       // static frame
  Iteration* parent = nullptr;             // null for the root
  std::vector<Iteration*> ring;            // by number modulo its size; guarded by the table's mutex, as is the rest
  int64_t lowest = 0;                      // oldest live iteration
  int64_t highest = -1;                    // newest; all between are alive
  int32_t enters_missing = 0;
  std::vector<HeldValue> invariants;
  std::vector<HeldValue> deferred;
  std::unique_ptr<std::atomic<uint8_t>[]> exit_delivered;  // by ordinal
};

// A node that can run, in an iteration.
struct ReadyNode {
  Iteration* iteration = nullptr;
  int32_t node = 0;
  int32_t last_arriver = -1;  // the node that made it ready; -1: ready from the start
};
using ReadyNodes = absl::InlinedVector<ReadyNode, 16>;

class FrameTable {
 public:
  // Adds `change` and returns the sum; not atomic where one thread does everything.
  template <typename T>
  T Add(std::atomic<T>& counter, T change) const {
    if (!frames_.one_thread) return counter.fetch_add(change, std::memory_order_acq_rel) + change;
    const T sum = counter.load(std::memory_order_relaxed) + change;
    counter.store(sum, std::memory_order_relaxed);
    return sum;
  }

  explicit FrameTable(const Plan& plan)
      : plan_(plan), frames_(plan.frame_plan), idle_iterations_(frames_.frames.size()), idle_frames_(frames_.frames.size()),
        latest_(std::make_unique<std::atomic<int64_t>[]>(frames_.frames.size())) {}

  // Makes the root's iteration and lists what can run at once.
  void Start(StepState* step, uint64_t first_key, ReadyNodes* ready);
  // Ends the step: lets go of everything that is still alive.
  void Clear();
  // True if nothing but the root's iteration is left, and every node of it has become ready.
  bool IsComplete() const;
  // What is alive and waits, and for what, for messages: a line per node, at most `limit`. If the plan is for one thread, by that one only.
  std::vector<std::string> DescribeWaiting(size_t limit) const;
  // Number of the iteration of a static frame that began last. From any thread.
  int64_t LatestIteration(int32_t frame) const { return latest_[frame].load(std::memory_order_relaxed); }
  // " in iteration 3 of frame 'f'" for the iteration with this key, "" if it is the root's or not alive. By the same threads.
  std::string DescribeIteration(uint64_t key) const;
  // Why a dead node of a live iteration has no value.
  std::string ExplainDead(const Iteration& iteration, int32_t node) const;

  // Each hands the outputs of a node that has run (or is dead) to whoever reads them, and adds what becomes ready. Two live values for
  // one Merge or Exit are an Internal error (A29).
  absl::Status Propagate(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready);
  // Counts a propagated node as finished. `iteration` may be recycled by this.
  absl::Status Finish(Iteration* iteration, ReadyNodes* ready);

  static bool IsDead(const FrameNode& node, uint64_t counter) {
    if (node.is_merge) return Counter::Pending(counter) != 0;
    return !node.never_dead && Counter::Dead(counter) > 0;
  }
  bool IsDead(const Iteration& iteration, int32_t node) const {
    return IsDead(frames_.nodes[node], iteration.counters[frames_.nodes[node].local].load(std::memory_order_acquire));
  }
  // Remembers which output a Switch has chosen, for ExplainDead.
  void SetChoice(Iteration& iteration, int32_t node, int32_t output) const {
    iteration.counters[frames_.nodes[node].local].store(static_cast<uint64_t>(output) << Counter::kIndexShift, std::memory_order_release);
  }
  int64_t live_iterations() const;

 private:
  std::unique_lock<std::mutex> Lock() const {
    return frames_.one_thread ? std::unique_lock<std::mutex>(mutex_, std::defer_lock) : std::unique_lock<std::mutex>(mutex_);
  }

  // Counts one arrival; true if that made the target ready.
  bool Arrive(Iteration* iteration, const FrameEdge& edge, bool dead, bool from_enter, absl::Status* status);
  bool ArriveAtMerge(std::atomic<uint64_t>& counter, const FrameNode& target, const FrameEdge& edge, bool dead, bool from_enter,
                     absl::Status* status);
  // Counts arrivals on all edges of `node` in `iteration`, where its outputs already are.
  absl::Status Deliver(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready);

  absl::Status PropagateEnter(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready);
  absl::Status PropagateExit(Iteration* iteration, int32_t node, bool dead, ReadyNodes* ready);
  absl::Status PropagateNextIteration(Iteration* iteration, int32_t node, ReadyNodes* ready);

  // All below require the mutex.
  absl::Status StoreAndDeliver(Iteration* iteration, HeldValue held, ReadyNodes* ready);
  FrameInstance* NewFrame(int32_t frame, Iteration* parent);
  Iteration* NewIteration(FrameInstance* frame);
  absl::Status BeginIteration(FrameInstance* frame, ReadyNodes* ready);
  bool MayRetire(const Iteration& iteration) const;
  absl::Status RetireFrom(Iteration* iteration, ReadyNodes* ready);
  void Recycle(Iteration* iteration);
  void ClearValues(Iteration* iteration);
  Iteration* EndFrame(FrameInstance* frame, ReadyNodes* ready);
  bool IsAlive(const Iteration& iteration) const;
  // I2, when `iteration` ends: OK if every node has completed or waits for what deadness kept away.
  absl::Status CheckCompleted(const Iteration& iteration) const;
  bool HasCompleted(const Iteration& iteration, int32_t node) const;
  bool MayNeverArrive(const Iteration& iteration, int32_t node) const;
  int64_t Live(const FrameInstance& frame) const { return frame.highest - frame.lowest + 1; }
  Value TakeInput(Iteration* iteration, int32_t node) const;
  static Iteration*& Place(FrameInstance& frame, int64_t number) { return frame.ring[number % static_cast<int64_t>(frame.ring.size())]; }
  static const Iteration* Place(const FrameInstance& frame, int64_t number) { return frame.ring[number % static_cast<int64_t>(frame.ring.size())]; }
  std::string DescribeNode(const Iteration& iteration, int32_t node) const;
  // Like IsDead, also of a node that is passed over.
  bool WasDead(const Iteration& iteration, int32_t node) const;
  uint32_t OutputSlot(int32_t node) const { return plan_.nodes[node].first_output; }

  const Plan& plan_;
  const FramePlan& frames_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Iteration>> iterations_;       // all there ever were
  std::vector<std::unique_ptr<FrameInstance>> instances_;
  std::vector<std::vector<Iteration*>> idle_iterations_;     // by static frame
  std::vector<std::vector<FrameInstance*>> idle_frames_;     // by static frame
  const std::unique_ptr<std::atomic<int64_t>[]> latest_;     // by static frame: the iteration that began last
  FrameInstance* root_ = nullptr;
  uint64_t last_key_ = 0;                                    // of the iterations of this step
  StepState* step_ = nullptr;
};

}  // namespace thalweg
