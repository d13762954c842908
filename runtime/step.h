// StepState: everything that changes while one step runs. Reused by later steps of the same plan.
//
// Threading: `values` follow the plan's order (a slot is written by its producer before readers are released); the status,
// cancellation callbacks and foreign trace events are locked; counters are atomic. One StepState serves one step at a time.
// What runs and what waits can be asked from any thread while the step runs (runtime/step_report.h).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/ops/step_services.h"
#include "thalweg/runtime/frame_table.h"
#include "thalweg/runtime/plan.h"
#include "thalweg/runtime/recorder.h"
#include "thalweg/runtime/resource_manager.h"
#include "thalweg/runtime/thread_pool.h"

namespace thalweg {

// What a step shares with its session.
struct StepEnvironment {
  ThreadPool* pool = nullptr;
  SessionResources* resources = nullptr;
  Allocator* host_allocator = nullptr;
};

// An asynchronous node that has begun and not ended.
struct PendingNode {
  const PlanNode* node = nullptr;
  int32_t frame = 0;
  int64_t iteration = 0;
};

class StepState final : public StepServices {
 public:
  // `plan` and what `environment` points at must outlive the state.
  StepState(const Plan& plan, const StepEnvironment& environment);

  // Prepares for a new step. `feeds` must stay valid until the step ends. A time_point::max() deadline means none.
  void Start(absl::Span<const Tensor> feeds, std::vector<Tensor>* results, std::chrono::steady_clock::time_point deadline,
             Recorder* recorder);
  // The same for a call that is part of the step `caller`: its identity, container and time limit hold here too. Not recorded:
  // a trace shows the call as one node. Ended by EndNested before Finish.
  void StartNested(StepState& caller, absl::Span<const Tensor> feeds, std::vector<Tensor>* results);
  void EndNested();
  // After all nodes have drained: clears what an aborted step left behind, empties the step's container, returns the status.
  absl::Status Finish();

  const Plan& plan() const { return plan_; }
  ThreadPool& pool() const { return *environment_.pool; }
  const StepEnvironment& environment() const { return environment_; }
  // How many calls this step is within.
  int call_depth() const { return call_depth_; }
  // The step that all calls around this one belong to; this one, if it is no call. Owns the work items of all of them.
  StepState* root() { return root_; }
  // KernelContext::iteration_key outside loops; those of loops count on from it. Each call has a range of its own.
  uint64_t first_key() const { return first_key_; }
  // Of the root: why a call within the step failed, the first of them; OK if none has. No failure of a call is ever survived by the
  // step, so once there is one no further call need begin. Thread-safe.
  void SetCallFault(const absl::Status& fault);
  absl::Status CallFault();
  // Submitted when the last node is done, in place of waking the thread that waits for the step. Set for calls only, which
  // nobody waits for.
  const WorkItem& when_drained() const { return when_drained_; }
  void set_when_drained(const WorkItem& item) { when_drained_ = item; }
  Value* values() { return values_.get(); }
  absl::Span<const Tensor> feeds() const { return feeds_; }
  std::vector<Tensor>& results() { return *results_; }
  Recorder* recorder() const { return kRecordingBuiltIn ? recorder_ : nullptr; }
  std::chrono::steady_clock::time_point deadline() const { return deadline_; }

  // Of a call, whose root has failed.
  void FailWithCaller();
  // The first failure is the step's status (A61); it stops nodes that have not started and runs the OnCancel callbacks.
  void Fail(absl::Status status);
  // True if `next` should no longer be started. Looks at the clock only if the step has a deadline. `iteration` is for the message, where
  // the plan does not tell it (replay does).
  bool ShouldStop(const PlanNode& next, int64_t iteration = -1) {
    if (__builtin_expect(attention_.load(std::memory_order_relaxed) != 0, 0) && Attend()) return true;
    return has_deadline_ && PastDeadline(next, iteration);
  }

  // Of the parallel executor.
  std::atomic<int32_t>& pending(int32_t segment) { return pending_[segment]; }
  std::atomic<int32_t>& readers_left(uint32_t slot) { return readers_left_[slot]; }
  std::atomic<int32_t>& segments_left() { return segments_left_; }
  // Contexts and completion data of asynchronous nodes, which must outlive the call that started them.
  struct AsyncExecution {
    KernelContext context;
    std::vector<uint8_t> last_use;
    int32_t segment = -1;
    uint64_t start_ticks = 0;
    PendingNode pending;
  };
  AsyncExecution& async(int32_t index) { return async_[index]; }

  // Of the replay executor.
  struct Replay {
    struct Active {
      int32_t frame;
      int32_t run;            // the next one
      bool next_is_live;      // a NextIteration of this iteration had a value
      uint64_t key;           // of the present iteration (KernelContext::iteration_key)
    };
    std::vector<uint8_t> flags;       // by guard; [0] is always set
    std::vector<int64_t> iterations;  // by frame: number of the present or last iteration
    std::vector<Active> stack;        // from the root to the frame that runs
    uint64_t last_key = 0;
  };
  Replay& replay() { return replay_; }

  // Of the frame executor: nodes that are ready or running.
  FrameTable& frame_table() { return *frame_table_; }
  std::atomic<int64_t>& in_flight() { return in_flight_; }

  // ---- For reports about running steps. All thread-safe.

  // An asynchronous node has begun; `pending` stays where it is until it ends.
  void BeginPending(const PendingNode* pending);
  void EndPending(const PendingNode* pending);
  // What a compute thread is busy with: a kernel, from Enter to Leave. A plan for one thread is hardly ever between two kernels for long,
  // so there leaving is not recorded.
  void EnterKernel(const PlanNode& node, uint64_t iteration_key) {
    RunningKernel* const running = one_thread_ ? &running_[0] : RunningHere();
    if (running == nullptr) return;
    running->key.store(iteration_key, std::memory_order_relaxed);
    running->node.store(&node, std::memory_order_relaxed);
  }
  void LeaveKernel() {
    if (one_thread_) return;
    if (RunningKernel* running = RunningHere()) running->node.store(nullptr, std::memory_order_relaxed);
  }
  struct PendingFact {
    const PlanNode* node = nullptr;
    int32_t frame = 0;
    int64_t iteration = 0;
    std::string waits_for;  // "" if the kernel does not say
  };
  // At most `limit`, of the earliest iterations; `in_all` becomes how many there are.
  std::vector<PendingFact> PendingFacts(size_t limit, size_t* in_all);
  struct RunningFact {
    int thread = 0;
    const PlanNode* node = nullptr;
    uint64_t key = 0;
  };
  std::vector<RunningFact> RunningFacts() const;
  // Looks at the calls that are under way in this step (not those within them), the deepest ones first, at most `limit`. They stay
  // while `look` runs, which must not end or make calls. Returns how many there are in all.
  size_t LookAtCalls(size_t limit, absl::FunctionRef<void(StepState&)> look);
  // FrameTable::DescribeWaiting of a plan for one thread, whose table nobody else may read: that thread does it when it next looks whether
  // it should stop. Nothing if it does not look for a while (a kernel that takes long), or if somebody else is asking.
  std::vector<std::string> AskForWaiting(size_t limit);
  // The calling thread runs the plan, and from now on (until the second call) looks often for who asks.
  void BeginAnswering();
  void EndAnswering();
  uint64_t start_ticks() const { return start_ticks_; }
  // Of a plan for replay: the number of the present or last iteration of a frame.
  int64_t ReplayIteration(int32_t frame) { return std::atomic_ref<int64_t>(replay_.iterations[frame]).load(std::memory_order_relaxed); }

  // Why a fetch has no value, for the message of the step. Thread-safe.
  void SetDeadReason(int32_t fetch, std::string reason);
  std::string DeadReason(int32_t fetch) const;

  // StepServices.
  int64_t step_id() const override { return step_id_; }
  bool cancelled() const override { return (attention_.load(std::memory_order_relaxed) & (kStopping | kRootStopping)) != 0; }
  uint64_t OnCancel(absl::AnyInvocable<void()> fn) override { return OnCancelOfWait(-1, nullptr, std::move(fn)); }
  uint64_t OnCancelOfWait(int32_t node, WaitsFor waits_for, absl::AnyInvocable<void()> fn) override;
  void RemoveOnCancel(uint64_t token) override;
  ResourceManager& resources() override { return *environment_.resources; }
  absl::string_view step_container() const override;
  Allocator& host_allocator() override { return *environment_.host_allocator; }
  int num_threads() const override { return environment_.pool->threads(); }
  void ParallelFor(int64_t total, double nanos_per_item, absl::FunctionRef<void(int64_t, int64_t)> fn) override {
    environment_.pool->ParallelFor(root(), total, nanos_per_item, fn);
  }

 private:
  struct CancelCallback {
    absl::AnyInvocable<void()> run;
    int32_t node = -1;   // whose wait it ends
    WaitsFor waits_for;  // may be null
  };
  struct alignas(64) RunningKernel {
    std::atomic<const PlanNode*> node{nullptr};
    std::atomic<uint64_t> key{0};
  };

  RunningKernel* RunningHere() {
    const int thread = ThreadPool::CurrentThreadIndex();
    return thread < 0 ? nullptr : &running_[thread];
  }
  struct Question {
    size_t limit = 0;
    bool answered = false;
    std::vector<std::string> lines;
  };

  // What attention_ asks for; true if the step should stop.
  bool Attend();
  void StopCalls();
  bool PastDeadline(const PlanNode& next, int64_t iteration);
  void ClearReplayedValues();

  const Plan& plan_;
  const StepEnvironment environment_;
  std::unique_ptr<Value[]> values_;
  std::unique_ptr<std::atomic<int32_t>[]> pending_;       // per segment; null for sequential plans
  std::unique_ptr<std::atomic<int32_t>[]> readers_left_;  // per slot; null for sequential plans
  std::vector<AsyncExecution> async_;
  std::atomic<int32_t> segments_left_{0};
  Replay replay_;
  std::unique_ptr<FrameTable> frame_table_;  // of kFrames only
  std::atomic<int64_t> in_flight_{0};

  absl::Span<const Tensor> feeds_;
  std::vector<Tensor>* results_ = nullptr;
  Recorder* recorder_ = nullptr;
  int64_t step_id_ = 0;
  StepState* caller_ = nullptr;
  StepState* root_ = this;
  uint64_t first_key_ = 0;
  std::atomic<uint64_t> calls_made_{0};  // of the root
  std::atomic<bool> has_call_fault_{false};
  uint64_t start_ticks_ = 0;
  WorkItem when_drained_;
  int call_depth_ = 0;
  std::chrono::steady_clock::time_point deadline_;
  bool has_deadline_ = false;
  std::atomic<uint64_t> next_clock_ticks_{0};  // when it is worth looking at the clock again
  static constexpr uint8_t kStopping = 1;      // Fail has been called
  static constexpr uint8_t kAsked = 2;         // by AskForWaiting
  static constexpr uint8_t kRootStopping = 4;  // of a call: Fail has been called of its root, and whoever runs the call is to call its Fail
  std::atomic<uint8_t> attention_{0};  // one word, so that a look at it costs the same whatever it may say

  mutable std::mutex mutex_;
  mutable std::string container_;                             // guarded by mutex_; "" until somebody asks
  absl::Status status_;                                       // guarded by mutex_
  std::map<int32_t, std::string> dead_reasons_;               // guarded by mutex_
  std::map<uint64_t, CancelCallback> callbacks_;              // guarded by mutex_
  uint64_t next_token_ = 1;                                   // guarded by mutex_
  bool running_callbacks_ = false;                            // guarded by mutex_
  std::thread::id callback_thread_;                           // guarded by mutex_
  std::condition_variable callbacks_done_;

  const bool one_thread_;                     // the plan is for one
  std::unique_ptr<RunningKernel[]> running_;  // by thread
  std::mutex report_mutex_;                   // never held together with another but mutex_ of a call (LookAtCalls) or of this step
  absl::flat_hash_set<const PendingNode*> pending_nodes_;  // guarded by report_mutex_
  absl::flat_hash_set<StepState*> calls_;                  // guarded by report_mutex_; of the root
  absl::Status call_fault_;                                // guarded by report_mutex_; of the root

  std::mutex question_mutex_;  // no other is taken under it but the frame table's
  std::condition_variable answered_;
  Question* question_ = nullptr;  // guarded by question_mutex_
  bool answering_ = false;        // guarded by question_mutex_
};

// What is the same for all executors when the last node of a step has been counted, after which the state may be gone: wakes the
// thread that waits for the step, or submits what ends the call. Made before counting.
class DrainSignal {
 public:
  explicit DrainSignal(StepState& step) : pool_(step.pool()), item_(step.when_drained()) {}
  void Send() const {
    if (item_.run != nullptr) pool_.SubmitFirst(item_);
    else pool_.Notify();
  }

 private:
  ThreadPool& pool_;
  const WorkItem item_;
};

// Executes the plan of `step` on the calling thread and, where the plan says so, on the pool. Returns when every node has
// completed or been dropped; the status is the step's. The calling thread must be a compute thread (ScopedComputeThread).
void ExecuteSequential(StepState& step);
void ExecuteParallel(StepState& step);
void ExecuteReplay(StepState& step);
void ExecuteFrames(StepState& step);

// The one of them that the plan is made for.
void ExecuteStep(StepState& step);

// A call with asynchronous nodes: Start... begins it on the calling thread and returns without waiting; when_drained comes when every
// node has completed or been dropped, and EndFrames then does the rest. Of kSegments and kFrames.
void StartParallel(StepState& step);
void StartFrames(StepState& step);
void EndFrames(StepState& step);

// Shared by the executors: runs one synchronous node that is no control flow, on the `values` of its iteration. `last_use` has
// one entry per input.
absl::Status RunNode(StepState& step, const PlanNode& node, Value* values, const uint8_t* last_use, KernelContext& context);
// Reads the tensors that references among the node's inputs refer to (A70, A71).
absl::Status ReadReferences(const Plan& plan, const PlanNode& node, Value* values);
// Which output of a kSwitch node its second input chooses (A31, A32, A34).
absl::Status ChooseByIndex(const PlanNode& node, const Tensor& choice, int32_t* branch);
inline absl::Status ChooseBranch(const PlanNode& node, const Value& choice, int32_t* branch) {
  if (__builtin_expect(choice.tensor.dtype() != DType::kBool || choice.tensor.rank() != 0, 0)) return ChooseByIndex(node, choice.tensor, branch);
  *branch = *static_cast<const bool*>(choice.tensor.raw()) ? 1 : 0;
  return absl::OkStatus();
}
// What the executor checks after a kernel (A31, A82).
absl::Status DescribeBadOutput(const PlanNode& node, int output, const Value& value);
inline absl::Status CheckOutputs(const PlanNode& node, const Value* values) {
  const DType* declared = node.info->output_types().data();
  for (int i = 0; i < node.num_outputs; ++i) {
    const Value& out = values[node.first_output + i];
    if (__builtin_expect(out.tensor.dtype() != declared[i] && out.ref == nullptr, 0)) return DescribeBadOutput(node, i, out);
  }
  return absl::OkStatus();
}
// Runs the kernel of a kKernel node without references among its inputs.
inline absl::Status RunKernel(StepState& step, const PlanNode& node, Value* values, const uint8_t* last_use, KernelContext& context);
// Bytes that this execution of the node allocated for its outputs (not those it passed on or reused).
int64_t AllocatedBytes(const PlanNode& node, const Value* values);
// Adds node, op, device, frame, iteration and input shapes to an error of a kernel, unless the error has the payload
// kInnerCall.
inline constexpr char kInnerCall[] = "thalweg/inner-call";  // of a call within a call: only the outermost one is described
// `iteration_key` is that of the execution.
absl::Status DescribeFailure(const absl::Status& status, StepState& step, const PlanNode& node, const Value* values,
                             uint64_t iteration_key);

inline absl::Status RunKernel(StepState& step, const PlanNode& node, Value* values, const uint8_t* last_use, KernelContext& context) {
  const Plan& plan = step.plan();
  context.Bind(node.info, &step, values, plan.input_slots.data() + node.first_input, values + node.first_output, last_use, nullptr);
  step.EnterKernel(node, context.iteration_key());
  absl::Status status = node.kernel->Compute(context);
  step.LeaveKernel();
  if (status.ok()) status = CheckOutputs(node, values);
  if (__builtin_expect(!status.ok(), 0)) return DescribeFailure(status, step, node, values, context.iteration_key());
  return status;
}

}  // namespace thalweg
