#include "thalweg/runtime/function_plans.h"

#include <atomic>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "thalweg/runtime/step.h"

namespace thalweg {
namespace {

// Of all functions of one signature. A small file can ask for very much by functions that call each other.
constexpr size_t kMostPlannedNodes = 2'000'000;
constexpr size_t kMaxIdleStates = 16;
// Calls within calls. Each holds the state of a step: some kilobytes, more for large functions.
constexpr int kMostNestedCalls = 10'000;

// Runs a function in the place of a node.
class CallKernel final : public AsyncKernel {
 public:
  explicit CallKernel(CalledFunction* function) : function_(function) {}

  void ComputeAsync(KernelContext& ctx, Done done) override {
    std::vector<Tensor> args;
    for (int i = 0; i < ctx.num_inputs(); ++i) args.push_back(ctx.TakeInput(i));
    function_->Start(static_cast<StepState&>(ctx.step()), ctx.node().id, std::move(args),
                     [&ctx, done = std::move(done)](absl::Status status, std::vector<Tensor> results) mutable {
                       for (int i = 0; status.ok() && i < ctx.num_outputs(); ++i) ctx.SetOutput(i, std::move(results[i]));
                       done(std::move(status));
                     });
  }

 private:
  CalledFunction* const function_;
};

}  // namespace

// One execution of a function, from Start to `done`.
struct CalledFunction::Call {
  CalledFunction* function;
  StepState* caller;
  int32_t node;
  Done done;
  std::vector<Tensor> args;
  std::vector<Tensor> results;
  std::unique_ptr<StepState> step;
  uint64_t cancel_token = 0;
  // Of calls that items of the pool execute: EndItem and, once the caller is cancelled, CancelItem. The last one ends the call.
  std::atomic<int> items{1};
};

CalledFunction::CalledFunction(FunctionRef function, Effects effects) : function_(std::move(function)), effects_(effects) {}
CalledFunction::~CalledFunction() = default;

absl::Status CalledFunction::CheckDepth(const StepState& caller) const {
  if (caller.call_depth() < kMostNestedCalls) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("function '", function_.name, "' is called within ", caller.call_depth(),
                                                   " other calls, and more are not allowed; does the recursion end?"));
}

void CalledFunction::Start(StepState& caller, int32_t node, std::vector<Tensor> args, Done done) {
  absl::Status possible = fault_;
  if (possible.ok()) possible = CheckDepth(caller);
  if (!possible.ok()) {
    caller.root()->SetCallFault(possible);
    return done(std::move(possible), {});
  }
  std::unique_ptr<Call> call(new Call{this, &caller, node, std::move(done), std::move(args), {}, nullptr});
  if (plan_->num_async == 0) {
    Begin(*call);
    caller.RemoveOnCancel(call->cancel_token);
    End(std::move(call));
    return;
  }
  caller.pool().SubmitFirst({&BeginItem, call.release(), 0, caller.root()});
}

void CalledFunction::BeginItem(void* call, int64_t) {
  auto* begun = static_cast<Call*>(call);
  absl::Status fault = begun->caller->root()->CallFault();
  if (fault.ok()) return begun->function->Begin(*begun);
  // In a recursion with several branches every one that began would make more. The failure has been described where it was.
  const std::unique_ptr<Call> dropped(begun);
  fault.SetPayload(kInnerCall, absl::Cord());
  dropped->done(std::move(fault), {});
}

// After this a call with asynchronous nodes may have ended and be gone.
void CalledFunction::Begin(Call& call) {
  call.results.assign(plan_->fetch_names.size(), Tensor());
  call.step = AcquireState(*call.caller);
  StepState& step = *call.step;
  step.StartNested(*call.caller, call.args, &call.results);
  step.set_when_drained({&EndItem, &call, 0, step.root()});
  const auto waits_for = [this] { return absl::StrCat("the call of function '", function_.name, "'"); };
  call.cancel_token = call.caller->OnCancelOfWait(call.node, waits_for, [&call] { Cancel(call); });
  if (plan_->num_async == 0) ExecuteStep(step);
  else if (plan_->execution == Execution::kFrames) StartFrames(step);
  else StartParallel(step);
}

// Cancelling calls within calls one within the other would take stack, so it is left to items.
void CalledFunction::Cancel(Call& call) {
  if (call.function->plan_->num_async == 0) return call.step->FailWithCaller();
  call.items.fetch_add(1, std::memory_order_relaxed);
  call.caller->pool().SubmitFirst({&CancelItem, &call, 0, call.caller->root()});
}

void CalledFunction::CancelItem(void* call, int64_t) {
  auto* cancelled = static_cast<Call*>(call);
  cancelled->step->FailWithCaller();
  Leave(cancelled);
}

void CalledFunction::EndItem(void* call, int64_t) {
  auto* ended = static_cast<Call*>(call);
  ended->caller->RemoveOnCancel(ended->cancel_token);
  Leave(ended);
}

void CalledFunction::Leave(Call* call) {
  if (call->items.fetch_sub(1, std::memory_order_acq_rel) == 1) call->function->End(std::unique_ptr<Call>(call));
}

void CalledFunction::End(std::unique_ptr<Call> call) {
  StepState& step = *call->step;
  if (plan_->num_async > 0 && plan_->execution == Execution::kFrames) EndFrames(step);
  step.EndNested();
  absl::Status status = step.Finish();
  ReleaseState(std::move(call->step));
  const bool finished = status.ok();
  if (finished) status = CheckResults(call->results);
  if (!status.ok()) call->caller->root()->SetCallFault(status);
  // Of a deep recursion the failing node and the first call are worth a mention.
  if (!finished && call->caller->call_depth() > 0) status.SetPayload(kInnerCall, absl::Cord());
  else status.ErasePayload(kInnerCall);
  call->done(std::move(status), std::move(call->results));
}

absl::Status CalledFunction::CheckResults(const std::vector<Tensor>& results) const {
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].initialized()) continue;
    return absl::InternalError(absl::StrCat("result ", i, " of function '", function_.name, "' has no value: the branch that gives it was not taken"));
  }
  return absl::OkStatus();
}

std::unique_ptr<StepState> CalledFunction::AcquireState(StepState& caller) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<StepState> state = std::move(idle_.back());
      idle_.pop_back();
      return state;
    }
  }
  return std::make_unique<StepState>(*plan_, caller.environment());
}

void CalledFunction::ReleaseState(std::unique_ptr<StepState> state) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kMaxIdleStates) idle_.push_back(std::move(state));
}

FunctionPlans::FunctionPlans(std::shared_ptr<const Graph> loaded) : loaded_(std::move(loaded)), bodies_(*loaded_) {}

std::shared_ptr<Kernel> FunctionPlans::KernelFor(const FunctionRef& function, Effects effects) {
  absl::StatusOr<std::shared_ptr<const FunctionBody>> body = bodies_.Get(function);
  const FunctionRef& wanted = body.ok() ? (*body)->function : function;
  for (const auto& known : functions_) {
    if (known->effects_ == effects && known->function_ == wanted) return std::make_shared<CallKernel>(known.get());
  }
  functions_.push_back(std::make_unique<CalledFunction>(wanted, effects));
  return std::make_shared<CallKernel>(functions_.back().get());
}

void FunctionPlans::BuildAll(Build build) {
  size_t num_nodes = 0;
  for (; num_built_ < functions_.size(); ++num_built_) {
    CalledFunction& function = *functions_[num_built_];
    absl::StatusOr<std::shared_ptr<const FunctionBody>> body = bodies_.Get(function.function_);
    if (!body.ok()) {
      function.fault_ = body.status();
    } else if (num_nodes > kMostPlannedNodes) {
      function.fault_ = absl::ResourceExhaustedError(absl::StrCat("the functions that this step calls have more than ", kMostPlannedNodes, " nodes in all"));
    } else if (absl::StatusOr<std::unique_ptr<Plan>> plan = build(*body, function.effects_); plan.ok()) {
      num_nodes += (*plan)->nodes.size();
      function.plan_ = *std::move(plan);
    } else {
      function.fault_ = plan.status();
    }
  }
}

}  // namespace thalweg
