#include "thalweg/runtime/session_core.h"

#include <algorithm>
#include <vector>

#include "thalweg/runtime/step_report.h"

namespace thalweg {

absl::Status SessionCore::Register(StepState* step) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed()) return absl::CancelledError("the session is closed");
  running_.insert(step);
  return absl::OkStatus();
}

void SessionCore::Unregister(StepState* step) {
  std::lock_guard<std::mutex> lock(mutex_);
  running_.erase(step);
  // Notified under the lock: after it is released, Close may return and this object may be gone.
  if (running_.empty()) idle_.notify_all();
}

std::string SessionCore::DescribeSteps() {
  const auto since_made = std::chrono::nanoseconds(std::chrono::steady_clock::now() - made_time_);
  const uint64_t now = Recorder::Ticks();
  const double nanos_per_tick = static_cast<double>(since_made.count()) / static_cast<double>(std::max<uint64_t>(1, now - made_ticks_));
  std::string out;
  std::lock_guard<std::mutex> lock(mutex_);  // keeps the steps where they are
  std::vector<StepState*> steps(running_.begin(), running_.end());
  std::sort(steps.begin(), steps.end(), [](const StepState* a, const StepState* b) { return a->step_id() < b->step_id(); });
  for (StepState* step : steps) {
    const uint64_t ticks = now - std::min(now, step->start_ticks());
    out += DescribeStep(*step, static_cast<int64_t>(static_cast<double>(ticks) * nanos_per_tick));
  }
  return out;
}

void SessionCore::Close() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    closed_.store(true, std::memory_order_release);
    for (StepState* step : running_) step->Fail(absl::CancelledError("the session was closed while the step ran"));
    idle_.wait(lock, [&] { return running_.empty(); });
  }
  pool_.Notify();
  resources_.Clear();
}

}  // namespace thalweg
