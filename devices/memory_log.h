// MemoryLog: which node's buffer came and went when, for memory profiles.
//
// Every allocator has one (Allocator::memory_log); it is off, and then costs one relaxed load per allocation, until
// somebody starts it. It lives as long as the allocator or one of its buffers does.
// Threading: all methods are thread-safe. One reader at a time: TryStart fails while another is logging.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "thalweg/proto/export.h"

namespace thalweg {

struct MemoryLogEvent {
  std::chrono::steady_clock::time_point time;
  int64_t bytes = 0;     // negative: freed
  int32_t node_id = -1;  // the plan's id of the node that allocated it; -1: none
};

class THALWEG_EXPORT MemoryLog {
 public:
  // False if it is logging for somebody else.
  bool TryStart();
  // Ends logging and returns the events in the order in which they were reported.
  std::vector<MemoryLogEvent> Stop();

  bool on() const { return on_.load(std::memory_order_relaxed); }
  void Record(int64_t bytes, int32_t node_id) {
    if (__builtin_expect(on(), 0)) Append(bytes, node_id);
  }

 private:
  void Append(int64_t bytes, int32_t node_id);

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  std::vector<MemoryLogEvent> events_;  // guarded by mutex_
};

}  // namespace thalweg
