// One compiled signature of a session and the pool of its step states.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "thalweg/runtime/plan.h"
#include "thalweg/runtime/session.h"
#include "thalweg/runtime/step.h"

namespace thalweg {

class SessionCore;

// Cancellation state shared between a token and the step it belongs to.
struct Cancellation::State {
  std::mutex mutex;
  bool cancelled = false;
  std::vector<StepState*> steps;
};

class CompiledCallable final : public Callable {
 public:
  CompiledCallable(std::shared_ptr<SessionCore> core, std::unique_ptr<Plan> plan, Info info);
  ~CompiledCallable() override;

  absl::StatusOr<std::vector<Tensor>> Run(absl::Span<const Tensor> feeds, const RunOptions& options, Cancellation* cancellation) override;
  absl::Status RunInto(absl::Span<const Tensor> feeds, std::vector<Tensor>* results, const RunOptions& options,
                       Cancellation* cancellation) override;
  Info info() const override { return info_; }

  // What steps that have ended left alive, for tests: iterations in the states kept for later steps, and bytes of the whole session.
  int64_t LiveIterations();
  int64_t BytesInUse() const;

 private:
  absl::Status CheckFeeds(absl::Span<const Tensor> feeds) const;
  absl::Status CheckResults(const std::vector<Tensor>& results, const StepState& step) const;
  absl::Status CopySharedResults(std::vector<Tensor>* results) const;
  absl::Status RunRecorded(absl::Span<const Tensor> feeds, std::vector<Tensor>* results, const RunOptions& options,
                           Cancellation* cancellation, Recorder* recorder);
  absl::Status RunStep(StepState& step, absl::Span<const Tensor> feeds, std::vector<Tensor>* results, const RunOptions& options,
                       Cancellation* cancellation, Recorder* recorder);
  std::unique_ptr<StepState> AcquireState();
  void ReleaseState(std::unique_ptr<StepState> state);
  std::unique_ptr<Recorder> AcquireRecorder();
  void ReleaseRecorder(std::unique_ptr<Recorder> recorder);

  const std::shared_ptr<SessionCore> core_;  // outlives the plan's tensors and kernels
  const std::unique_ptr<Plan> plan_;
  const Info info_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StepState>> idle_;  // guarded by mutex_
  std::unique_ptr<Recorder> idle_recorder_;       // guarded by mutex_; null until a step was recorded
};

}  // namespace thalweg
