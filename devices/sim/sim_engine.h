// The engine of a simulated device: one thread that runs the items of the device's streams.
//
// The compute stream and the copy stream of the device are one queue here, first in, first out over both. That is what
// events between two streams would have to ensure: a copy starts after the work launched before it, and work after the
// copies. (A device with real copy engines overlaps the two; this one only promises the order.)
//
// Threading: all methods are thread-safe. The thread starts with the first item. The destructor runs what is queued,
// then joins; on the engine's own thread (an item dropped the last owner) it runs what is queued, and the thread ends.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

namespace thalweg {

class SimEngine {
 public:
  using Item = absl::AnyInvocable<void()>;

  explicit SimEngine(std::string thread_name);
  SimEngine(const SimEngine&) = delete;
  SimEngine& operator=(const SimEngine&) = delete;
  ~SimEngine();

  // Appends an item. Never blocks; items must not block either.
  void Submit(Item item);
  // Waits for the items submitted before this call. FailedPrecondition on the engine's own thread.
  absl::Status Synchronize();

 private:
  class Queue;
  const std::shared_ptr<Queue> queue_;
};

}  // namespace thalweg
