// Several threads: segments become ready when their last predecessor segment finishes (A18), the finishing thread goes on
// with one of them and hands the others to the pool (A49). Asynchronous nodes finish on whichever thread completes them.

#include <utility>

#include "absl/container/inlined_vector.h"
#include "thalweg/runtime/step.h"
#include "thalweg/runtime/step_report.h"
#include "thalweg/runtime/transfer.h"
#include "thalweg/runtime/tuning.h"

namespace thalweg {
namespace {

using ReadyList = absl::InlinedVector<int32_t, 16>;

class ParallelExecution {
 public:
  explicit ParallelExecution(StepState& step) : step_(step), plan_(step.plan()), graph_(step.plan().segments) {}

  // Entry of a work item: runs `segment` and whatever it makes ready on this thread.
  static void RunItem(void* context, int64_t segment) {
    ParallelExecution execution(*static_cast<StepState*>(context));
    ReadyList ready;
    ready.push_back(static_cast<int32_t>(segment));
    execution.Drain(ready);
  }

  // Runs ready segments until none is left on this thread. Expensive ones beyond the first go to the pool.
  void Drain(ReadyList& ready) {
    while (!ready.empty()) {
      const int32_t segment = ready.back();
      ready.pop_back();
      ShareExpensive(ready);
      RunSegment(segment, &ready);
    }
  }

  void SubmitRoots() {
    ReadyList ready;
    for (int32_t i = 0; i < static_cast<int32_t>(graph_.segments.size()); ++i) {
      if (graph_.segments[i].initial_pending == 0) ready.push_back(i);
    }
    Drain(ready);
  }

 private:
  float Cost(int32_t segment) const {
    const float measured = plan_.measured_nanos[segment].load(std::memory_order_relaxed);
    return measured > 0 ? measured : graph_.segments[segment].estimated_nanos;
  }

  void Submit(int32_t segment) {
    step_.pool().Submit({&RunItem, &step_, segment, step_.root()}, Cost(segment) >= kWorthWakingNanos);
  }

  void ShareExpensive(ReadyList& ready) {
    size_t kept = 0;
    for (int32_t segment : ready) {
      if (!graph_.segments[segment].asynchronous && Cost(segment) >= kExpensiveNodeNanos) Submit(segment);
      else ready[kept++] = segment;
    }
    ready.resize(kept);
  }

  void RunSegment(int32_t index, ReadyList* ready) {
    const Segment& segment = graph_.segments[index];
    if (segment.asynchronous) {
      if (step_.ShouldStop(plan_.nodes[segment.begin])) FinishSegment(index, ready);
      else StartAsync(index);
      return;
    }
    const uint64_t start = Recorder::Ticks();
    KernelContext context;
    context.set_iteration_key(step_.first_key());
    for (int32_t n = segment.begin; n < segment.end && !step_.ShouldStop(plan_.nodes[n]); ++n) {
      absl::Status status = RunSync(plan_.nodes[n], n, context);
      if (!status.ok()) step_.Fail(std::move(status));
    }
    UpdateCost(index, Recorder::Ticks() - start);
    FinishSegment(index, ready);
  }

  // A running mean of what the segment took, in ticks of about a third of a nanosecond: good enough to tell 1 us from 30.
  void UpdateCost(int32_t index, uint64_t ticks) {
    std::atomic<float>& measured = plan_.measured_nanos[index];
    const float nanos = static_cast<float>(ticks) * kNanosPerTickGuess;
    const float old = measured.load(std::memory_order_relaxed);
    measured.store(old > 0 ? 0.75f * old + 0.25f * nanos : nanos, std::memory_order_relaxed);
  }

  // Decides per input whether this node is the value's last reader: statically where it is the only one, else by count.
  void ComputeLastUse(const PlanNode& node, uint8_t* last_use) {
    for (uint32_t i = 0; i < node.num_inputs; ++i) {
      const uint32_t slot = plan_.input_slots[node.first_input + i];
      last_use[i] = plan_.sole_use[node.first_input + i] ||
                    (plan_.forwards_inputs && plan_.readers[slot] > 1 && step_.readers_left(slot).load(std::memory_order_acquire) == 1);
    }
  }

  // Frees inputs that nobody else will read and outputs that nobody reads at all.
  void ReleaseValues(const PlanNode& node) {
    Value* values = step_.values();
    for (uint32_t i = 0; i < node.num_inputs; ++i) {
      const uint32_t slot = plan_.input_slots[node.first_input + i];
      if (plan_.readers[slot] == 0) continue;  // a constant
      if (plan_.readers[slot] == 1 || step_.readers_left(slot).fetch_sub(1, std::memory_order_acq_rel) == 1) values[slot].Clear();
    }
    for (uint32_t slot = node.first_output; slot < node.first_output + node.num_outputs; ++slot) {
      if (plan_.readers[slot] == 0) values[slot].Clear();
    }
    if (node.has_dereferences) ReleaseReferences(node);
  }

  void ReleaseReferences(const PlanNode& node) {
    for (const Dereference& d : plan_.dereferences.at(static_cast<int32_t>(&node - plan_.nodes.data()))) {
      if (step_.readers_left(d.reference_slot).fetch_sub(1, std::memory_order_acq_rel) == 1) step_.values()[d.reference_slot].Clear();
    }
  }

  absl::Status RunSync(const PlanNode& node, int32_t index, KernelContext& context) {
    absl::InlinedVector<uint8_t, 16> last_use(node.num_inputs);
    ComputeLastUse(node, last_use.data());
    const uint64_t start = step_.recorder() ? Recorder::Ticks() : 0;
    absl::Status status = RunNode(step_, node, step_.values(), last_use.data(), context);
    if (step_.recorder()) Record(index, start);
    if (status.ok()) ReleaseValues(node);
    return status;
  }

  void Record(int32_t index, uint64_t start) {
    step_.recorder()->Record(ThreadPool::CurrentThreadIndex(),
                             {start, Recorder::Ticks(), index, AllocatedBytes(plan_.nodes[index], step_.values())});
  }

  void StartAsync(int32_t index) {
    const int32_t n = graph_.segments[index].begin;
    const PlanNode& node = plan_.nodes[n];
    StepState::AsyncExecution& async = step_.async(node.aux);
    async.segment = index;
    async.start_ticks = Recorder::Ticks();
    async.last_use.resize(node.num_inputs);
    ComputeLastUse(node, async.last_use.data());
    async.pending.node = &node;
    step_.BeginPending(&async.pending);
    Value* values = step_.values();
    async.context.Bind(node.info, &step_, values, plan_.input_slots.data() + node.first_input, values + node.first_output,
                       async.last_use.data(), nullptr);
    async.context.set_iteration_key(step_.first_key());
    StepState* step = &step_;
    if (node.has_dereferences) {
      if (absl::Status status = ReadReferences(plan_, node, values); !status.ok()) return CompleteAsync(n, std::move(status));
    }
    if (node.kind == NodeKind::kAsync) {
      static_cast<AsyncKernel*>(node.kernel)->ComputeAsync(async.context, [step, n](absl::Status status) {
        ParallelExecution(*step).CompleteAsync(n, std::move(status));
      });
      return;
    }
    StartTransfer(step_, node, async.context.TakeInput(0), [step, n](absl::StatusOr<Tensor> copied) {
      absl::Status status = copied.status();
      if (status.ok()) step->values()[step->plan().nodes[n].first_output].tensor = *std::move(copied);
      ParallelExecution(*step).CompleteAsync(n, std::move(status));
    });
  }

  void CompleteAsync(int32_t n, absl::Status status) {
    const PlanNode& node = plan_.nodes[n];
    const int32_t segment = step_.async(node.aux).segment;
    step_.EndPending(&step_.async(node.aux).pending);
    if (status.ok()) status = CheckOutputs(node, step_.values());
    if (step_.recorder()) Record(n, step_.async(node.aux).start_ticks);
    if (status.ok()) ReleaseValues(node);
    else step_.Fail(DescribeFailure(status, step_, node, step_.values(), step_.first_key()));
    // This thread may be a device's engine: it must not run segments itself (A53).
    ReadyList ready;
    const DrainSignal drained(step_);
    CollectReady(segment, &ready);
    for (int32_t s : ready) Submit(s);
    // After this the step may end and its state be gone.
    if (step_.segments_left().fetch_sub(1, std::memory_order_seq_cst) == 1) drained.Send();
  }

  void CollectReady(int32_t index, ReadyList* ready) {
    const Segment& segment = graph_.segments[index];
    const int32_t* successor = graph_.successors.data() + segment.first_successor;
    for (int32_t i = 0; i < segment.num_successors; ++i) {
      std::atomic<int32_t>& pending = step_.pending(successor[i]);
      // The last arriver needs no read-modify-write.
      if (pending.load(std::memory_order_acquire) == 1 || pending.fetch_sub(1, std::memory_order_acq_rel) == 1) ready->push_back(successor[i]);
    }
  }

  void FinishSegment(int32_t index, ReadyList* ready) {
    const DrainSignal drained(step_);
    CollectReady(index, ready);
    // With segments left in `ready` the count cannot reach zero here, so the state is still there for them.
    if (step_.segments_left().fetch_sub(1, std::memory_order_seq_cst) == 1) drained.Send();
  }

  static constexpr float kNanosPerTickGuess = 0.4f;

  StepState& step_;
  const Plan& plan_;
  const SegmentGraph& graph_;
};

}  // namespace

void StartParallel(StepState& step) { ParallelExecution(step).SubmitRoots(); }

void ExecuteParallel(StepState& step) {
  StartParallel(step);
  ThreadPool& pool = step.pool();
  const auto done = [&] { return step.segments_left().load(std::memory_order_seq_cst) == 0; };
  if (pool.RunUntil(&step, done, step.deadline())) return;
  step.Fail(TimeLimitError(step));
  pool.RunUntil(&step, done, std::chrono::steady_clock::time_point::max());
}

}  // namespace thalweg
