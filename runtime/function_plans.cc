#include "thalweg/runtime/function_plans.h"

#include <pthread.h>

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "thalweg/runtime/step.h"

namespace thalweg {
namespace {

// Of all functions of one signature. A small file can ask for very much by functions that call each other.
constexpr size_t kMostPlannedNodes = 2'000'000;
constexpr size_t kMaxIdleStates = 16;
// Left for the kernels of the innermost call.
constexpr size_t kStackReserve = size_t{768} << 10;

// Runs a function in the place of a node.
class CallKernel final : public Kernel {
 public:
  explicit CallKernel(CalledFunction* function) : function_(function) {}

  absl::Status Compute(KernelContext& ctx) override {
    std::vector<Tensor> args, results;
    for (int i = 0; i < ctx.num_inputs(); ++i) args.push_back(ctx.TakeInput(i));
    THALWEG_RETURN_IF_ERROR(function_->Run(static_cast<StepState&>(ctx.step()), args, &results));
    for (int i = 0; i < ctx.num_outputs(); ++i) ctx.SetOutput(i, std::move(results[i]));
    return absl::OkStatus();
  }

 private:
  CalledFunction* const function_;
};

// Bytes between here and the end of the calling thread's stack.
size_t StackLeft() {
  thread_local char* const end = [] {
    pthread_attr_t attr;
    void* low = nullptr;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) return static_cast<char*>(nullptr);
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    return static_cast<char*>(low);
  }();
  char here;
  return end == nullptr || &here < end ? 0 : static_cast<size_t>(&here - end);
}

}  // namespace

CalledFunction::CalledFunction(FunctionRef function, Effects effects) : function_(std::move(function)), effects_(effects) {}
CalledFunction::~CalledFunction() = default;

absl::Status CalledFunction::Run(StepState& caller, absl::Span<const Tensor> args, std::vector<Tensor>* results) {
  THALWEG_RETURN_IF_ERROR(fault_);
  if (StackLeft() < kStackReserve) {
    return absl::ResourceExhaustedError(absl::StrCat("function '", function_.name, "' is called within ", caller.call_depth(),
                                                     " other calls, deeper than the stack allows; does the recursion end?"));
  }
  results->assign(plan_->fetch_names.size(), Tensor());
  std::unique_ptr<StepState> step = AcquireState(caller);
  absl::Status status = RunStep(*step, caller, args, results);
  ReleaseState(std::move(step));
  if (status.ok()) return CheckResults(*results);
  // Of a deep recursion the failing node and the first call are worth a mention.
  if (caller.call_depth() > 0) status.SetPayload(kInnerCall, absl::Cord());
  else status.ErasePayload(kInnerCall);
  return status;
}

absl::Status CalledFunction::RunStep(StepState& step, StepState& caller, absl::Span<const Tensor> args, std::vector<Tensor>* results) {
  step.StartNested(caller, args, results);
  const uint64_t token = caller.OnCancel([&step] {
    step.Fail(absl::CancelledError("the step that makes the call has ended"));
    step.pool().Notify();
  });
  ExecuteStep(step);
  caller.RemoveOnCancel(token);
  return step.Finish();
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
