// Conditionals and loops on any number of threads, with asynchronous nodes and iterations side by side. A node becomes ready when its
// counter says so (A18, A24); the finishing thread goes on with what it made ready and hands expensive nodes to the pool (A49).

#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/runtime/frame_table.h"
#include "thalweg/runtime/step.h"
#include "thalweg/runtime/step_report.h"
#include "thalweg/runtime/transfer.h"
#include "thalweg/runtime/tuning.h"

namespace thalweg {
namespace {

class FrameExecution {
 public:
  explicit FrameExecution(StepState& step) : step_(step), plan_(step.plan()), frames_(step.plan().frame_plan), table_(step.frame_table()) {}

  static void RunItem(void* context, int64_t node) {
    auto* iteration = static_cast<Iteration*>(context);
    FrameExecution execution(*iteration->frame->step);
    ReadyNodes ready;
    ready.push_back({iteration, static_cast<int32_t>(node), static_cast<int32_t>(node >> 32)});
    execution.Drain(ready);
  }

  void Start() {
    ReadyNodes ready;
    table_.Start(&step_, step_.first_key(), &ready);
    step_.in_flight().store(static_cast<int64_t>(ready.size()), std::memory_order_seq_cst);
    Drain(ready);
  }

 private:
  // One asynchronous execution; it owns itself until it completes.
  struct AsyncRun {
    StepState* step;
    Iteration* iteration;
    int32_t node;
    int32_t last_arriver;
    PendingNode pending;
    uint64_t start_ticks;
    absl::InlinedVector<uint8_t, 8> last_use;
    KernelContext context;
  };

  void Drain(ReadyNodes& ready) {
    while (!ready.empty()) {
      const ReadyNode next = ready.back();
      ready.pop_back();
      if (!ready.empty()) ShareExpensive(ready);
      Process(next, &ready);
    }
  }

  void Submit(const ReadyNode& ready) {
    const int64_t argument = (static_cast<int64_t>(ready.last_arriver) << 32) | ready.node;
    step_.pool().Submit({&RunItem, ready.iteration, argument, step_.root()}, frames_.nodes[ready.node].expensive);
  }

  void ShareExpensive(ReadyNodes& ready) {
    if (step_.num_threads() == 1 || frames_.one_thread) return;
    size_t kept = 0;
    for (const ReadyNode& r : ready) {
      if (frames_.nodes[r.node].expensive) Submit(r);
      else ready[kept++] = r;
    }
    ready.resize(kept);
  }

  void Process(const ReadyNode& r, ReadyNodes* ready) {
    const PlanNode& node = plan_.nodes[r.node];
    if (step_.ShouldStop(node, r.iteration->number)) {
      Count(-1);
      return;
    }
    const bool dead = table_.IsDead(*r.iteration, r.node);
    if (!dead && (node.kind == NodeKind::kAsync || node.kind == NodeKind::kTransfer)) {
      StartAsync(r);
      return;
    }
    if (dead) {
      if (node.kind == NodeKind::kRetval) ExplainDeadFetch(r);
      ReleaseInputs(*r.iteration, node);
    } else {
      const uint64_t start = step_.recorder() ? Recorder::Ticks() : 0;
      absl::Status status = RunLive(r, node);
      if (step_.recorder()) Record(r, start);
      if (!status.ok()) {
        step_.Fail(std::move(status));
        Count(-1);
        return;
      }
    }
    FinishNode(r, dead, ready);
  }

  void FinishNode(const ReadyNode& r, bool dead, ReadyNodes* ready) {
    const size_t before = ready->size();
    absl::Status status = table_.Propagate(r.iteration, r.node, dead, ready);
    if (!status.ok()) status = DescribeFailure(status, step_, plan_.nodes[r.node], r.iteration->values.get(), r.iteration->key);
    if (!dead && IsMovedByTable(plan_.nodes[r.node])) ReleaseInputs(*r.iteration, plan_.nodes[r.node]);
    status.Update(table_.Finish(r.iteration, ready));
    if (!status.ok()) step_.Fail(std::move(status));
    Count(static_cast<int64_t>(ready->size()) - static_cast<int64_t>(before) - 1);
  }

  // After the count reaches zero the step may end and its state be gone.
  void Count(int64_t change) {
    if (change == 0) return;
    if (frames_.one_thread) {
      table_.Add(step_.in_flight(), change);  // nobody waits while this thread runs
      return;
    }
    const DrainSignal drained(step_);
    if (step_.in_flight().fetch_add(change, std::memory_order_seq_cst) + change == 0) drained.Send();
  }

  absl::Status RunLive(const ReadyNode& r, const PlanNode& node) {
    Iteration& iteration = *r.iteration;
    Value* values = iteration.values.get();
    absl::Status status;
    switch (node.kind) {
      case NodeKind::kNoOp:
        return absl::OkStatus();
      case NodeKind::kSwitch:
        status = RunSwitch(iteration, r.node, node);
        break;
      case NodeKind::kMerge:
        return RunMerge(iteration, r.node, node);
      default: {
        if (IsMovedByTable(node)) return node.has_dereferences ? ReadReferences(plan_, node, values) : absl::OkStatus();
        context_.set_iteration_key(iteration.key);
        if (frames_.nodes[r.node].counts_readers) {
          absl::InlinedVector<uint8_t, 16> last_use(node.num_inputs);
          ComputeLastUse(iteration, node, last_use.data());
          status = RunNode(step_, node, values, last_use.data(), context_);
        } else {
          status = RunNode(step_, node, values, plan_.sole_use.data() + node.first_input, context_);
        }
        if (status.ok()) ReleaseInputs(iteration, node);
        return status;
      }
    }
    if (!status.ok()) return DescribeFailure(status, step_, node, values, iteration.key);
    ReleaseInputs(iteration, node);
    return absl::OkStatus();
  }

  // Nodes whose value goes to another iteration or frame.
  static bool IsMovedByTable(const PlanNode& node) {
    return node.kind == NodeKind::kEnter || node.kind == NodeKind::kExit || node.kind == NodeKind::kNextIteration;
  }

  absl::Status RunSwitch(Iteration& iteration, int32_t n, const PlanNode& node) {
    Value* values = iteration.values.get();
    if (node.has_dereferences) THALWEG_RETURN_IF_ERROR(ReadReferences(plan_, node, values));
    const uint32_t* inputs = plan_.input_slots.data() + node.first_input;
    int32_t branch = 0;
    THALWEG_RETURN_IF_ERROR(ChooseBranch(node, values[inputs[1]], &branch));
    HandOn(values, inputs[0], plan_.sole_use[node.first_input], node.first_output + branch);
    table_.SetChoice(iteration, n, branch);
    return absl::OkStatus();
  }

  absl::Status RunMerge(Iteration& iteration, int32_t n, const PlanNode& node) {
    Value* values = iteration.values.get();
    if (node.has_dereferences) THALWEG_RETURN_IF_ERROR(ReadReferences(plan_, node, values));
    const int32_t arrived = Counter::Index(iteration.counters[frames_.nodes[n].local].load(std::memory_order_acquire));
    const uint32_t input = node.first_input + arrived;
    HandOn(values, plan_.input_slots[input], plan_.sole_use[input], node.first_output);
    if (iteration.readers[node.first_output + 1] != 0) values[node.first_output + 1].tensor = plan_.merge_indices[arrived];
    return absl::OkStatus();
  }

  static void HandOn(Value* values, uint32_t from, bool is_last, uint32_t to) {
    if (is_last) values[to] = std::move(values[from]);
    else values[to] = values[from];
  }

  void ComputeLastUse(const Iteration& iteration, const PlanNode& node, uint8_t* last_use) const {
    for (uint32_t i = 0; i < node.num_inputs; ++i) {
      const uint32_t slot = plan_.input_slots[node.first_input + i];
      last_use[i] = plan_.sole_use[node.first_input + i] ||
                    (plan_.forwards_inputs && iteration.readers[slot] > 1 && iteration.readers_left[slot].load(std::memory_order_acquire) == 1);
    }
  }

  // What nobody else will read.
  void ReleaseInputs(Iteration& iteration, const PlanNode& node) {
    const uint32_t* slots = plan_.releases.data() + node.first_release;
    for (uint32_t i = 0; i < node.num_releases; ++i) {
      Value& value = iteration.values[slots[i]];
      if (iteration.readers[slots[i]] == 1 || table_.Add(iteration.readers_left[slots[i]], -1) == 0) {
        if (value.present()) value.Clear();
      }
    }
  }

  void StartAsync(const ReadyNode& r) {
    const PlanNode& node = plan_.nodes[r.node];
    auto* run = new AsyncRun{&step_, r.iteration, r.node, r.last_arriver, {&node, r.iteration->frame->frame, r.iteration->number}, Recorder::Ticks(), {}, {}};
    step_.BeginPending(&run->pending);
    Value* values = r.iteration->values.get();
    run->last_use.resize(node.num_inputs);
    ComputeLastUse(*r.iteration, node, run->last_use.data());
    run->context.Bind(node.info, &step_, values, plan_.input_slots.data() + node.first_input, values + node.first_output, run->last_use.data(),
                      nullptr);
    run->context.set_iteration_key(r.iteration->key);
    if (node.has_dereferences) {
      if (absl::Status status = ReadReferences(plan_, node, values); !status.ok()) {
        CompleteAsync(run, std::move(status));
        return;
      }
    }
    if (node.kind == NodeKind::kAsync) {
      static_cast<AsyncKernel*>(node.kernel)->ComputeAsync(run->context, [run](absl::Status status) { CompleteAsync(run, std::move(status)); });
      return;
    }
    StartTransfer(step_, node, run->context.TakeInput(0), [run](absl::StatusOr<Tensor> copied) {
      absl::Status status = copied.status();
      if (status.ok()) run->iteration->values[run->step->plan().nodes[run->node].first_output].tensor = *std::move(copied);
      CompleteAsync(run, std::move(status));
    });
  }

  static void CompleteAsync(AsyncRun* run, absl::Status status) {
    FrameExecution(*run->step).Complete(run, std::move(status));
    delete run;
  }

  // May run on a device's engine, which must not run nodes itself (A53).
  void Complete(AsyncRun* run, absl::Status status) {
    const ReadyNode r{run->iteration, run->node, run->last_arriver};
    step_.EndPending(&run->pending);
    const PlanNode& node = plan_.nodes[r.node];
    Value* values = r.iteration->values.get();
    if (status.ok()) status = CheckOutputs(node, values);
    if (step_.recorder()) Record(r, run->start_ticks);
    if (!status.ok()) {
      step_.Fail(DescribeFailure(status, step_, node, values, r.iteration->key));
      Count(-1);
      return;
    }
    ReleaseInputs(*r.iteration, node);
    ReadyNodes ready;
    status = table_.Propagate(r.iteration, r.node, /*dead=*/false, &ready);
    if (!status.ok()) status = DescribeFailure(status, step_, node, values, r.iteration->key);
    status.Update(table_.Finish(r.iteration, &ready));
    if (!status.ok()) step_.Fail(std::move(status));
    // Until all are submitted this execution keeps the step alive.
    const DrainSignal drained(step_);
    const int64_t made_ready = static_cast<int64_t>(ready.size());
    step_.in_flight().fetch_add(made_ready, std::memory_order_seq_cst);
    for (const ReadyNode& next : ready) Submit(next);
    if (step_.in_flight().fetch_sub(1, std::memory_order_seq_cst) == 1) drained.Send();
  }

  void Record(const ReadyNode& r, uint64_t start) {
    // The output of a node that the table moves lies in another iteration, and is not its own.
    const PlanNode& node = plan_.nodes[r.node];
    const int64_t bytes = IsMovedByTable(node) ? 0 : AllocatedBytes(node, r.iteration->values.get());
    step_.recorder()->Record(ThreadPool::CurrentThreadIndex(), {start, Recorder::Ticks(), r.node, bytes, r.iteration->frame->frame,
                                                                static_cast<int32_t>(r.iteration->number), r.last_arriver});
  }

  // While the iterations that it depends on are alive: afterwards nobody knows any more.
  void ExplainDeadFetch(const ReadyNode& r) {
    step_.SetDeadReason(plan_.nodes[r.node].aux, table_.ExplainDead(*r.iteration, r.node));
  }

  StepState& step_;
  const Plan& plan_;
  const FramePlan& frames_;
  FrameTable& table_;
  KernelContext context_;
};

}  // namespace

void StartFrames(StepState& step) {
  if (step.plan().frame_plan.one_thread) step.BeginAnswering();
  FrameExecution(step).Start();
}

void EndFrames(StepState& step) {
  if (step.plan().frame_plan.one_thread) step.EndAnswering();
  FrameTable& table = step.frame_table();
  if (!step.cancelled() && step.plan().frame_plan.check_completion && !table.IsComplete()) {
    const std::vector<std::string> waiting = table.DescribeWaiting(kMostWaitsInMessage);
    step.Fail(absl::InternalError(absl::StrCat("the step ended although nodes still wait (I2): ", absl::StrJoin(waiting, "; "))));
  }
  table.Clear();
}

void ExecuteFrames(StepState& step) {
  StartFrames(step);
  ThreadPool& pool = step.pool();
  const auto done = [&] { return step.in_flight().load(std::memory_order_seq_cst) == 0; };
  if (!pool.RunUntil(&step, done, step.deadline())) {
    step.Fail(TimeLimitError(step));
    pool.RunUntil(&step, done, std::chrono::steady_clock::time_point::max());
  }
  EndFrames(step);
}

}  // namespace thalweg
