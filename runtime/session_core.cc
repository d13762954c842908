#include "thalweg/runtime/session_core.h"

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
