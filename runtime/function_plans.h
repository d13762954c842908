// What is behind `_Call` nodes: functions that run as wholes, each a plan of its own, executed within the caller's step.
//
// A call is an asynchronous node, and holds no thread while it waits: a function that makes calls or has other asynchronous nodes is
// begun, ended and gone on with by items of the thread pool, so that calls within calls cost no stack and go depth first; any other runs
// on the thread that calls it.
//
// A function calls others, or itself, through kernels that point back here, so plans are built one after the other until no
// new function turns up. Threading: building is for one thread; afterwards everything is immutable but the idle step
// states, which are locked. Ownership: the plan of the signature owns its FunctionPlans.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/any_invocable.h"
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

  // Executes the function within the step `caller`; `done` comes exactly once, possibly before this returns. ResourceExhausted if calls
  // are nested too deep, Internal if a result has no value.
  using Done = absl::AnyInvocable<void(absl::Status, std::vector<Tensor>)>;
  void Start(StepState& caller, int32_t node, std::vector<Tensor> args, Done done);

 private:
  friend class FunctionPlans;
  struct Call;

  std::unique_ptr<StepState> AcquireState(StepState& caller);
  void ReleaseState(std::unique_ptr<StepState> state);
  absl::Status CheckDepth(const StepState& caller) const;
  void Begin(Call& call);
  static void BeginItem(void* call, int64_t);
  static void Cancel(Call& call);
  static void CancelItem(void* call, int64_t);
  static void EndItem(void* call, int64_t);
  static void Leave(Call* call);
  void End(std::unique_ptr<Call> call);
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
