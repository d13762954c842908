// Collects, while it lives, which node's buffers come and go on the devices of a plan, for Trace::memory.
//
// Threading: made and read by the thread that runs the step.
#pragma once

#include <chrono>
#include <vector>

#include "thalweg/devices/memory_log.h"
#include "thalweg/runtime/plan.h"
#include "thalweg/runtime/trace.h"

namespace thalweg {

class MemoryRecorder {
 public:
  // Starts the log of every device of the plan; a device that is logged for another step is left out.
  explicit MemoryRecorder(const Plan& plan);
  ~MemoryRecorder();
  MemoryRecorder(const MemoryRecorder&) = delete;
  MemoryRecorder& operator=(const MemoryRecorder&) = delete;

  // Stops and fills trace->memory with times since this recorder was made.
  void ToTrace(Trace* trace);

 private:
  const Plan& plan_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::vector<MemoryLog*> logs_;  // by device; null: not logged by this recorder
};

}  // namespace thalweg
