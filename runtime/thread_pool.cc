#include "thalweg/runtime/thread_pool.h"

#include <omp.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <thread>

#include "thalweg/runtime/tuning.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace thalweg {
namespace {

constexpr int kNotComputing = -1;
thread_local int t_thread_index = kNotComputing;

void Pause() {
#if defined(__SSE2__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

std::chrono::steady_clock::time_point SpinEnd() {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(static_cast<int64_t>(kSpinNanos));
}

}  // namespace

struct ThreadPool::Arena {
  explicit Arena(int workers) : arena(workers, /*reserved_for_masters=*/0) {}
  tbb::task_arena arena;
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(1, threads)) {
  if (threads_ > 1) arena_ = std::make_unique<Arena>(threads_ - 1);
  for (int index = threads_ - 1; index >= 1; --index) free_indices_.push_back(index);
}

ThreadPool::~ThreadPool() {
  while (active_workers_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
}

int ThreadPool::CurrentThreadIndex() { return t_thread_index; }

template <typename Wanted>
bool ThreadPool::TryPop(const Wanted& wanted, WorkItem* item) {
  if (queued_.load(std::memory_order_acquire) == 0) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = std::find_if(queue_.begin(), queue_.end(), wanted);
  if (it == queue_.end()) return false;
  *item = *it;
  queue_.erase(it);
  queued_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool ThreadPool::ClaimWorker() {
  int active = active_workers_.load(std::memory_order_relaxed);
  while (active < threads_ - 1) {
    if (active_workers_.compare_exchange_weak(active, active + 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void ThreadPool::Submit(const WorkItem& item, bool worth_waking) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(item);
    queued_.fetch_add(1, std::memory_order_seq_cst);
  }
  WakeForItem(worth_waking);
}

void ThreadPool::SubmitFirst(const WorkItem& item) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_front(item);
    queued_.fetch_add(1, std::memory_order_seq_cst);
  }
  WakeForItem(/*worth_waking=*/true);
}

void ThreadPool::WakeForItem(bool worth_waking) {
  if (arena_ && worth_waking && spinning_workers_.load(std::memory_order_relaxed) < queued_.load(std::memory_order_relaxed) &&
      ClaimWorker()) {
    arena_->arena.enqueue([this] { WorkerLoop(); });
  }
  Notify();
}

void ThreadPool::Notify() {
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  // The empty critical section orders this after a sleeper's last look at its condition.
  { std::lock_guard<std::mutex> lock(mutex_); }
  wake_.notify_all();
}

void ThreadPool::WorkerLoop() {
  int index;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    index = free_indices_.back();  // ClaimWorker lets in as many workers as there are indices
    free_indices_.pop_back();
  }
  {
    ScopedComputeThread compute;
    t_thread_index = index;
    WorkItem item;
    spinning_workers_.fetch_add(1, std::memory_order_relaxed);
    auto spin_end = SpinEnd();
    while (true) {
      if (TryPop([](const WorkItem&) { return true; }, &item)) {
        spinning_workers_.fetch_sub(1, std::memory_order_relaxed);
        item.run(item.context, item.argument);
        spinning_workers_.fetch_add(1, std::memory_order_relaxed);
        spin_end = SpinEnd();
      } else if (std::chrono::steady_clock::now() > spin_end) {
        break;
      } else {
        Pause();
      }
    }
    spinning_workers_.fetch_sub(1, std::memory_order_relaxed);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    free_indices_.push_back(index);
  }
  active_workers_.fetch_sub(1, std::memory_order_release);
}

bool ThreadPool::RunUntil(const void* owner, absl::FunctionRef<bool()> done, std::chrono::steady_clock::time_point deadline) {
  const auto owned = [owner](const WorkItem& candidate) { return candidate.owner == owner; };
  WorkItem item;
  auto spin_end = SpinEnd();
  while (!done()) {
    if (TryPop(owned, &item)) {
      item.run(item.context, item.argument);
      spin_end = SpinEnd();
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return done();
    if (now < spin_end) {
      Pause();
      continue;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const auto ready = [&] { return done() || std::any_of(queue_.begin(), queue_.end(), owned); };
    if (deadline == std::chrono::steady_clock::time_point::max()) wake_.wait(lock, ready);
    else wake_.wait_until(lock, deadline, ready);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    spin_end = SpinEnd();
  }
  return true;
}

namespace {

// One ParallelFor: threads take chunks by counting up `next`; the last to leave lets the caller go.
struct ChunkedLoop {
  absl::FunctionRef<void(int64_t, int64_t)> fn;
  int64_t total;
  int64_t chunk;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers;  // items submitted and not finished

  void Work() {
    while (true) {
      const int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= total) return;
      fn(begin, std::min(total, begin + chunk));
    }
  }
};

void HelpLoop(void* context, int64_t) {
  auto* loop = static_cast<ChunkedLoop*>(context);
  loop->Work();
  loop->helpers.fetch_sub(1, std::memory_order_release);
}

}  // namespace

void ThreadPool::ParallelFor(const void* owner, int64_t total, double nanos_per_item,
                             absl::FunctionRef<void(int64_t, int64_t)> fn) {
  if (total <= 0) return;
  const double whole = static_cast<double>(total) * std::max(nanos_per_item, 1e-3);
  if (!arena_ || total == 1 || whole < kWorthWakingNanos || t_thread_index == kNotComputing) {
    fn(0, total);
    return;
  }
  const int64_t most_chunks = static_cast<int64_t>(std::min(whole / kMinChunkNanos, 4.0 * threads_));
  const int64_t chunks = std::min(total, std::max<int64_t>(most_chunks, 2));
  const int helpers = static_cast<int>(std::min<int64_t>(threads_ - 1, chunks - 1));
  ChunkedLoop loop{fn, total, (total + chunks - 1) / chunks, {}, {helpers}};
  for (int i = 0; i < helpers; ++i) Submit({&HelpLoop, &loop, 0, owner}, /*worth_waking=*/true);
  loop.Work();
  // Helpers that have not started need not: take their items back. The others are in their last chunk.
  const auto ours = [&loop](const WorkItem& candidate) { return candidate.context == &loop; };
  WorkItem item;
  while (TryPop(ours, &item)) item.run(item.context, item.argument);
  while (loop.helpers.load(std::memory_order_acquire) > 0) Pause();
}

ScopedComputeThread::ScopedComputeThread() : saved_openmp_threads_(omp_get_max_threads()), saved_index_(t_thread_index) {
  if (saved_openmp_threads_ != 1) omp_set_num_threads(1);
  t_thread_index = 0;
}

ScopedComputeThread::~ScopedComputeThread() {
  if (saved_openmp_threads_ != 1) omp_set_num_threads(saved_openmp_threads_);
  t_thread_index = saved_index_;
}

}  // namespace thalweg
