// The compute threads of a session: at most `threads` in all, the calling thread included.
//
// What it is: one queue of work items, N-1 worker threads lent by oneTBB, and the rule how long they spin before they go
// back to sleep (a wake costs tens of microseconds). What it is not: a general executor; items must not block.
// Threading: all methods are thread-safe. The destructor waits until no worker is inside the pool.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "thalweg/ops/float_environment.h"

namespace thalweg {

// A piece of work: `run(context, argument)`. `owner` groups the items of one step.
struct WorkItem {
  void (*run)(void* context, int64_t argument) = nullptr;
  void* context = nullptr;
  int64_t argument = 0;
  const void* owner = nullptr;
};

class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Appends an item. A sleeping worker is woken only if `worth_waking`; spinning workers and waiting owners see it anyway.
  void Submit(const WorkItem& item, bool worth_waking);

  // Puts an item before all others, worth waking for. Depth first: calls within calls then hold as few of them alive as they can.
  void SubmitFirst(const WorkItem& item);

  // Runs items of `owner` on the calling thread until `done` returns true or the deadline passes (time_point::max(): none).
  // `done` must become true by an action that calls Notify() afterwards. Returns the last value of done().
  bool RunUntil(const void* owner, absl::FunctionRef<bool()> done, std::chrono::steady_clock::time_point deadline);
  // Wakes threads in RunUntil to look at their condition again.
  void Notify();

  // Splits [0, total) into chunks and runs them here, on workers and on the thread that waits for the items of `owner`; returns
  // when all are done. Runs inline when the whole takes less than a wake costs, when there are no workers, or when called from
  // a thread that is neither a worker nor inside a step of this pool.
  void ParallelFor(const void* owner, int64_t total, double nanos_per_item, absl::FunctionRef<void(int64_t, int64_t)> fn);

  // 0 for a calling thread, 1 .. threads-1 for workers, -1 for threads that do not compute (device engines).
  static int CurrentThreadIndex();

 private:
  struct Arena;
  friend class ScopedComputeThread;

  // Takes the first item that `wanted` says yes to.
  template <typename Wanted>
  bool TryPop(const Wanted& wanted, WorkItem* item);
  void WakeForItem(bool worth_waking);
  void WorkerLoop();
  bool ClaimWorker();

  const int threads_;
  std::unique_ptr<Arena> arena_;          // null with one thread
  std::atomic<int> queued_{0};            // size of queue_, readable without the lock
  std::atomic<int> active_workers_{0};
  std::atomic<int> spinning_workers_{0};
  std::atomic<int> sleepers_{0};          // threads blocked in RunUntil
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<WorkItem> queue_;            // guarded by mutex_
  std::vector<int> free_indices_;         // guarded by mutex_; of CurrentThreadIndex, for workers that come
};

// Makes the calling thread a compute thread for its scope: denormals flushed, OpenMP held to one thread; restored at the end.
class ScopedComputeThread {
 public:
  ScopedComputeThread();
  ~ScopedComputeThread();
  ScopedComputeThread(const ScopedComputeThread&) = delete;
  ScopedComputeThread& operator=(const ScopedComputeThread&) = delete;

 private:
  ScopedFlushDenormals flush_;
  int saved_openmp_threads_;
  int saved_index_;
};

}  // namespace thalweg
