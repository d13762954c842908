#include "thalweg/runtime/callable.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "thalweg/runtime/memory_recorder.h"
#include "thalweg/runtime/numerics_check.h"
#include "thalweg/runtime/recorder.h"
#include "thalweg/runtime/session_core.h"

namespace thalweg {
namespace {

// Idle states kept per callable; more exist only while more steps run at once.
constexpr size_t kMaxIdleStates = 16;

// Attaches a step to the caller's cancellation token for a scope.
class ScopedCancellation {
 public:
  ScopedCancellation(Cancellation* cancellation, StepState& step) : state_(cancellation ? cancellation->state() : nullptr), step_(step) {
    if (state_ == nullptr) return;
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->steps.push_back(&step_);
    if (state_->cancelled) step_.Fail(absl::CancelledError("the step was cancelled before it began"));
  }
  ~ScopedCancellation() {
    if (state_ == nullptr) return;
    std::lock_guard<std::mutex> lock(state_->mutex);
    state_->steps.erase(std::find(state_->steps.begin(), state_->steps.end(), &step_));
  }

 private:
  Cancellation::State* const state_;
  StepState& step_;
};

std::chrono::steady_clock::time_point DeadlineOf(const RunOptions& options) {
  if (options.timeout.count() <= 0) return std::chrono::steady_clock::time_point::max();
  const auto now = std::chrono::steady_clock::now();
  const auto most = std::chrono::steady_clock::time_point::max() - now;
  return now + std::min<std::chrono::nanoseconds>(options.timeout, most);
}

// Nanoseconds between two reads of the clock within a call of its own.
[[gnu::noinline]] int64_t NanosWithinCall() {
  const auto begin = std::chrono::steady_clock::now();
  return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

// What a clock around a call shows beyond the one within it, measured once: the call and the two clocks' own time, some 50 ns. Of a step
// that takes half a microsecond it is more than the 1% within which totals close.
int64_t NanosOfClockAround() {
  static const int64_t nanos = [] {
    std::array<int64_t, 101> differences;
    for (int64_t& difference : differences) {
      const auto begin = std::chrono::steady_clock::now();
      const int64_t within = NanosWithinCall();
      difference = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count() - within;
    }
    const auto middle = differences.begin() + differences.size() / 2;
    std::nth_element(differences.begin(), middle, differences.end());
    return *middle;
  }();
  return nanos;
}

}  // namespace

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}
Cancellation::~Cancellation() = default;

void Cancellation::Cancel() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->cancelled = true;
  for (StepState* step : state_->steps) {
    step->Fail(absl::CancelledError("the step was cancelled"));
    step->pool().Notify();
  }
}

CompiledCallable::CompiledCallable(std::shared_ptr<SessionCore> core, std::unique_ptr<Plan> plan, Info info)
    : core_(std::move(core)), plan_(std::move(plan)), info_(info) {}

CompiledCallable::~CompiledCallable() = default;

std::unique_ptr<StepState> CompiledCallable::AcquireState() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<StepState> state = std::move(idle_.back());
      idle_.pop_back();
      return state;
    }
  }
  return std::make_unique<StepState>(*plan_, core_->environment());
}

void CompiledCallable::ReleaseState(std::unique_ptr<StepState> state) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kMaxIdleStates) idle_.push_back(std::move(state));
}

int64_t CompiledCallable::LiveIterations() {
  std::lock_guard<std::mutex> lock(mutex_);
  int64_t live = 0;
  for (const auto& state : idle_) live += plan_->execution == Execution::kFrames ? state->frame_table().live_iterations() : 0;
  return live;
}

int64_t CompiledCallable::BytesInUse() const { return core_->budget().in_use(); }

std::unique_ptr<Recorder> CompiledCallable::AcquireRecorder() {
  std::unique_ptr<Recorder> recorder;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    recorder = std::move(idle_recorder_);
  }
  return recorder != nullptr ? std::move(recorder) : std::make_unique<Recorder>(*plan_, core_->pool().threads());
}

void CompiledCallable::ReleaseRecorder(std::unique_ptr<Recorder> recorder) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_recorder_ == nullptr) idle_recorder_ = std::move(recorder);
}

absl::Status CompiledCallable::CheckFeeds(absl::Span<const Tensor> feeds) const {
  if (feeds.size() != plan_->feed_types.size()) {
    return absl::InvalidArgumentError(absl::StrCat(feeds.size(), " tensors were fed where ", plan_->feed_types.size(), " are expected"));
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Tensor& t = feeds[i];
    if (!t.initialized()) return absl::InvalidArgumentError(absl::StrCat("the tensor fed to '", plan_->feed_names[i], "' is uninitialised"));
    const DType want = plan_->feed_types[i];
    if (t.dtype() != want) {
      return absl::InvalidArgumentError(absl::StrCat("'", plan_->feed_names[i], "' is ", DTypeName(want), " but was fed ", DTypeName(t.dtype()),
                                                     t.shape().ToString(), "; convert the value first"));
    }
    // Whatever it names is another session's, or may be gone (D24).
    if (want == DType::kResource) {
      return absl::InvalidArgumentError(absl::StrCat("'", plan_->feed_names[i],
                                                     "' is a resource, whose handle cannot be fed; feed what is read from it"));
    }
    if (!plan_->feed_shapes[i].IsCompatibleWith(t.shape())) {
      return absl::InvalidArgumentError(absl::StrCat("'", plan_->feed_names[i], "' has shape ", plan_->feed_shapes[i].ToString(),
                                                     " but was fed a tensor of shape ", t.shape().ToString()));
    }
    if (plan_->check_numerics != NumericsCheck::kOff) {
      const std::string what = absl::StrCat("the tensor fed to '", plan_->feed_names[i], "'");
      THALWEG_RETURN_IF_ERROR(CheckNumerics(what, t, plan_->check_numerics));
    }
  }
  return absl::OkStatus();
}

absl::Status CompiledCallable::CheckResults(const std::vector<Tensor>& results, const StepState& step) const {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].initialized()) {
      const std::string reason = step.DeadReason(static_cast<int32_t>(i));
      return absl::InvalidArgumentError(absl::StrCat("the fetched tensor '", plan_->fetch_names[i], "' has no value: ",
                                                     reason.empty() ? "its node did not run" : reason));
    }
  }
  return absl::OkStatus();
}

// Updates of reference variables write into buffers that others share; what the caller gets must not change any more.
absl::Status CompiledCallable::CopySharedResults(std::vector<Tensor>* results) const {
  for (Tensor& result : *results) {
    if (!IsPlainMemory(result.dtype()) || result.num_elements() == 0 || result.OwnsBufferAlone()) continue;
    THALWEG_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(result.dtype(), result.shape(), core_->devices()[0]->allocator()));
    std::memcpy(copy.mutable_raw(), result.raw(), static_cast<size_t>(result.num_elements()) * DTypeSize(result.dtype()));
    result = std::move(copy);
  }
  return absl::OkStatus();
}

absl::Status CompiledCallable::RunStep(StepState& step, absl::Span<const Tensor> feeds, std::vector<Tensor>* results,
                                       const RunOptions& options, Cancellation* cancellation, Recorder* recorder) {
  step.Start(feeds, results, DeadlineOf(options), recorder);
  if (absl::Status status = core_->Register(&step); !status.ok()) {
    step.Finish().IgnoreError();
    return status;
  }
  {
    ScopedCancellation cancel(cancellation, step);
    ScopedComputeThread compute;
    ExecuteStep(step);
  }
  core_->Unregister(&step);
  return step.Finish();
}

absl::Status CompiledCallable::RunInto(absl::Span<const Tensor> feeds, std::vector<Tensor>* results, const RunOptions& options,
                                       Cancellation* cancellation) {
  if (options.trace == nullptr) return RunRecorded(feeds, results, options, cancellation, nullptr);
  if (!kRecordingBuiltIn) return absl::UnimplementedError("this build cannot record steps (THALWEG_RECORDING is OFF)");
  // The step's length is what a clock around this call shows, preparing and reading out the recording included.
  const int64_t clock_around = NanosOfClockAround();
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<Recorder> recorder = AcquireRecorder();
  recorder->Begin();
  auto memory = options.record_memory ? std::make_unique<MemoryRecorder>(*plan_) : nullptr;
  absl::Status status = RunRecorded(feeds, results, options, cancellation, recorder.get());
  recorder->ToTrace(feeds, options.trace);
  options.trace->memory.clear();
  if (memory != nullptr) memory->ToTrace(options.trace);
  memory.reset();
  ReleaseRecorder(std::move(recorder));
  options.trace->step_nanos = clock_around + std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  return status;
}

absl::Status CompiledCallable::RunRecorded(absl::Span<const Tensor> feeds, std::vector<Tensor>* results, const RunOptions& options,
                                           Cancellation* cancellation, Recorder* recorder) {
  THALWEG_RETURN_IF_ERROR(CheckFeeds(feeds));
  results->clear();
  results->resize(plan_->fetch_names.size());
  std::unique_ptr<StepState> step = AcquireState();
  absl::Status status = RunStep(*step, feeds, results, options, cancellation, recorder);
  if (status.ok()) status = CheckResults(*results, *step);
  ReleaseState(std::move(step));
  if (status.ok() && plan_->has_references) status = CopySharedResults(results);
  if (!status.ok()) results->clear();
  return status;
}

absl::StatusOr<std::vector<Tensor>> CompiledCallable::Run(absl::Span<const Tensor> feeds, const RunOptions& options,
                                                          Cancellation* cancellation) {
  std::vector<Tensor> results;
  THALWEG_RETURN_IF_ERROR(RunInto(feeds, &results, options, cancellation));
  return results;
}

}  // namespace thalweg
