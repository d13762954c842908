#include "thalweg/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace thalweg {
namespace {

constexpr auto kNever = std::chrono::steady_clock::time_point::max();

int ThreadsOfThisProcess() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

TEST(ThreadPool, ParallelForCoversTheRangeOnce) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    ScopedComputeThread compute;
    for (int64_t total : {0, 1, 7, 1000, 12345}) {
      std::vector<std::atomic<int>> touched(total);
      pool.ParallelFor(&pool, total, 10'000, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) touched[i].fetch_add(1);
      });
      for (const auto& t : touched) ASSERT_EQ(t.load(), 1);
    }
  }
}

TEST(ThreadPool, SmallLoopsStayOnTheCaller) {
  ThreadPool pool(4);
  ScopedComputeThread compute;
  const std::thread::id caller = std::this_thread::get_id();
  pool.ParallelFor(&pool, 100, 1.0, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 100);
  });
}

TEST(ThreadPool, NestedLoopsFinish) {
  ThreadPool pool(3);
  ScopedComputeThread compute;
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(&pool, 20, 50'000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      pool.ParallelFor(&pool, 10, 50'000, [&](int64_t b, int64_t e) { sum.fetch_add(e - b); });
    }
  });
  EXPECT_EQ(sum.load(), 200);
}

// With one worker, a loop that starts on it can only be helped by the thread that waits for the step's end.
TEST(ThreadPool, WhoWaitsForAnOwnerHelpsWithItsLoops) {
  struct Work {
    ThreadPool pool{2};
    std::atomic<int> begun{0};
    std::atomic<bool> met{false}, done{false};
    static void Run(void* context, int64_t) {
      auto& work = *static_cast<Work*>(context);
      work.pool.ParallelFor(&work, 2, 1e6, [&](int64_t, int64_t) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        work.begun.fetch_add(1);
        while (work.begun.load() < 2 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
        if (work.begun.load() == 2) work.met.store(true);
      });
      work.done.store(true);
      work.pool.Notify();
    }
  } work;
  ScopedComputeThread compute;
  work.pool.Submit({&Work::Run, &work, 0, /*owner=*/&work.pool}, /*worth_waking=*/true);  // for the worker alone
  EXPECT_TRUE(work.pool.RunUntil(&work, [&] { return work.done.load(); }, std::chrono::steady_clock::time_point::max()));
  EXPECT_TRUE(work.met.load());
}

struct Counter {
  std::atomic<int> ran{0};
  static void Run(void* context, int64_t) { static_cast<Counter*>(context)->ran.fetch_add(1); }
};

TEST(ThreadPool, AnOwnerRunsItsOwnItems) {
  ThreadPool pool(1);  // no workers at all
  ScopedComputeThread compute;
  Counter mine, other;
  pool.Submit({&Counter::Run, &mine, 0, &mine}, true);
  pool.Submit({&Counter::Run, &other, 0, &other}, true);
  EXPECT_TRUE(pool.RunUntil(&mine, [&] { return mine.ran.load() == 1; }, kNever));
  EXPECT_EQ(other.ran.load(), 0) << "items of another step are not this caller's work";
  EXPECT_TRUE(pool.RunUntil(&other, [&] { return other.ran.load() == 1; }, kNever));
}

TEST(ThreadPool, RunUntilEndsAtItsDeadline) {
  ThreadPool pool(2);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(pool.RunUntil(&pool, [] { return false; }, deadline));
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

TEST(ThreadPool, NotifyWakesASleepingOwner) {
  ThreadPool pool(2);
  std::atomic<bool> done{false};
  std::thread signaller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done.store(true);
    pool.Notify();
  });
  EXPECT_TRUE(pool.RunUntil(&pool, [&] { return done.load(); }, kNever));
  signaller.join();
}

// users.md A23: the number of compute threads is what was asked for, the caller included.
TEST(ThreadPool, OneThreadMeansOneThread) {
  const int before = ThreadsOfThisProcess();
  ThreadPool pool(1);
  ScopedComputeThread compute;
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(&pool, 1000, 100'000, [&](int64_t begin, int64_t end) { sum.fetch_add(end - begin); });
  EXPECT_EQ(sum.load(), 1000);
  EXPECT_EQ(ThreadsOfThisProcess(), before);
}

TEST(ThreadPool, ComputeThreadIndexIsScoped) {
  EXPECT_EQ(ThreadPool::CurrentThreadIndex(), -1);
  {
    ScopedComputeThread compute;
    EXPECT_EQ(ThreadPool::CurrentThreadIndex(), 0);
  }
  EXPECT_EQ(ThreadPool::CurrentThreadIndex(), -1);
}

}  // namespace
}  // namespace thalweg
