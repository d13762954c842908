// What is behind `_Call` nodes: functions that run as wholes, each a plan of its own, executed within the caller's step.
//
// A function calls others, or itself, through kernels that point back here, so plans are built one after the other until no
// new function turns up. Threading: building is for one thread; afterwards everything is immutable but the idle step
// states, which are locked. Ownership: the plan of the signature owns its FunctionPlans.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/graph/lowering/function_body.h"
#include "thalweg/runtime/plan.h"

namespace thalweg {

class StepState;

// A function with one choice of effects.
class CalledFunction {
 public:
  CalledFunction(FunctionRef function, Effects effects);
  ~CalledFunction();

  // Executes the function on the calling thread within the step `caller`. ResourceExhausted if calls are nested too deep for
  // the thread's stack, Internal if a result has no value.
  absl::Status Run(StepState& caller, absl::Span<const Tensor> args, std::vector<Tensor>* results);

 private:
  friend class FunctionPlans;
  std::unique_ptr<StepState> AcquireState(StepState& caller);
  void ReleaseState(std::unique_ptr<StepState> state);
  absl::Status RunStep(StepState& step, StepState& caller, absl::Span<const Tensor> args, std::vector<Tensor>* results);
  absl::Status CheckResults(const std::vector<Tensor>& results) const;

  const FunctionRef function_;
  const Effects effects_;
  absl::Status fault_;          // why there is no plan
  std::unique_ptr<Plan> plan_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StepState>> idle_;  // guarded by mutex_
};

class FunctionPlans {
 public:
  // `loaded` gives the library.
  explicit FunctionPlans(std::shared_ptr<const Graph> loaded);

  // The kernel of a node that calls `function`. It can run once BuildAll has returned.
  std::shared_ptr<Kernel> KernelFor(const FunctionRef& function, Effects effects);

  // Builds what KernelFor was asked for, and what `build` asks it for in turn. Faults are kept for whoever makes the call.
  using Build = absl::FunctionRef<absl::StatusOr<std::unique_ptr<Plan>>(const std::shared_ptr<const FunctionBody>& body, Effects effects)>;
  void BuildAll(Build build);

 private:
  const std::shared_ptr<const Graph> loaded_;
  FunctionBodies bodies_;
  std::vector<std::unique_ptr<CalledFunction>> functions_;
  size_t num_built_ = 0;
};

}  // namespace thalweg
