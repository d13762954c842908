// Recorder: the event rings of one traced step after the other. One ring per compute thread, so that recording takes two reads
// of the time-stamp counter and one store per node; threads that are not compute threads (device engines) share a locked one.
// The rings are kept from step to step: fresh memory would cost more per event, in page faults, than the event itself.
//
// Threading: Begin and ToTrace before and after the step; Record from all its threads in between.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "thalweg/runtime/plan.h"
#include "thalweg/runtime/trace.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace thalweg {

#if defined(THALWEG_WITHOUT_RECORDING)
inline constexpr bool kRecordingBuiltIn = false;
#else
inline constexpr bool kRecordingBuiltIn = true;
#endif

class Recorder {
 public:
  // Room for every node of the plan on each of `threads` threads, and for some iterations of those in loops. `plan` must outlive
  // the recorder.
  Recorder(const Plan& plan, int threads);

  // Forgets the step before and starts the clock of the next one.
  void Begin();

  // A cheap monotonic clock in unspecified units; ToTrace converts.
  static uint64_t Ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
  }

  struct Event {
    uint64_t start;
    uint64_t end;
    int32_t node;
    int64_t output_bytes;
    int32_t frame = 0;
    int32_t iteration = 0;
    int32_t last_arriver = kDerived;
  };
  static constexpr int32_t kDerived = -2;  // found from the events when they are read out
  // `thread` as ThreadPool::CurrentThreadIndex() says; negative: not a compute thread.
  void Record(int thread, const Event& event) {
    if (thread < 0) {
      RecordForeign(event);
      return;
    }
    Ring& ring = rings_[thread];
    if (ring.used < ring_size_) ring.events[ring.used++] = event;
    else ++ring.dropped;
  }

  // Fills `trace` of a step with these feeds, but for the step's length, which the caller of the step measures.
  void ToTrace(absl::Span<const Tensor> feeds, Trace* trace);

 private:
  void RecordForeign(const Event& event);
  size_t NumEvents();

  struct alignas(64) Ring {
    std::unique_ptr<Event[]> events;  // not initialised: pages of rings that nobody uses are never touched
    size_t used = 0;
    int64_t dropped = 0;
  };
  std::chrono::steady_clock::time_point begin_time_;
  uint64_t begin_ticks_ = 0;
  const Plan& plan_;
  const size_t ring_size_;
  std::vector<Ring> rings_;
  std::mutex mutex_;
  std::vector<Event> foreign_;  // guarded by mutex_
};

}  // namespace thalweg
