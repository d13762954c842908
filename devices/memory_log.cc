#include "thalweg/devices/memory_log.h"

namespace thalweg {

bool MemoryLog::TryStart() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (on_.load(std::memory_order_relaxed)) return false;
  events_.clear();
  on_.store(true, std::memory_order_relaxed);
  return true;
}

std::vector<MemoryLogEvent> MemoryLog::Stop() {
  std::lock_guard<std::mutex> lock(mutex_);
  on_.store(false, std::memory_order_relaxed);
  return std::exchange(events_, {});
}

void MemoryLog::Append(int64_t bytes, int32_t node_id) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Looked at again under the lock, so that nothing arrives after Stop.
  if (!on()) return;
  events_.push_back({std::chrono::steady_clock::now(), bytes, node_id});
}

}  // namespace thalweg
