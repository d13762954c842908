#include "thalweg/devices/allocator.h"

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "thalweg/devices/large_block_cache.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/devices/thread_counter.h"

namespace thalweg {
namespace {

struct LimitedHost {
  explicit LimitedHost(int64_t limit)
      : budget(std::make_shared<MemoryBudget>(limit)), allocator(MakeHostAllocator("CPU:0", budget)) {}
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<Allocator> allocator;
};

TEST(HostAllocator, BlocksAreAlignedUsableAndKnowTheirNode) {
  LimitedHost host(0);
  for (int64_t bytes : {0, 1, 63, 64, 65, 959, 960, 961, 1023, 1024, 1025, 4096, 5000, 100000, 70000000}) {
    const BufferRef buffer = host.allocator->Allocate(bytes, 42).value();
    EXPECT_EQ(buffer->bytes(), static_cast<size_t>(bytes));
    EXPECT_EQ(buffer->node_id(), 42);
    EXPECT_EQ(buffer->memory(), MemoryKind::kHost);
    EXPECT_TRUE(buffer->writable());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % kBufferAlignment, 0u) << bytes;
    std::memset(buffer->data(), 0xab, static_cast<size_t>(bytes));
  }
}

TEST(HostAllocator, ChargesTheBudgetAndReleasesIt) {
  LimitedHost host(0);
  BufferRef small = host.allocator->Allocate(100, -1).value();
  BufferRef large = host.allocator->Allocate(1 << 20, -1).value();
  EXPECT_GE(host.budget->in_use(), 100 + (1 << 20));
  EXPECT_EQ(host.allocator->stats().bytes_in_use, host.budget->in_use());
  const int64_t peak = host.budget->in_use();
  large = BufferRef();
  small = BufferRef();
  EXPECT_EQ(host.budget->in_use(), 0);
  EXPECT_EQ(host.budget->peak(), peak);
  EXPECT_EQ(host.allocator->stats().peak_bytes, peak);
  EXPECT_EQ(host.allocator->stats().allocations, 2);
  host.budget->ResetPeak();
  EXPECT_EQ(host.budget->peak(), 0);
}

TEST(HostAllocator, EmptyBuffersAreNotFreeOfCharge) {
  LimitedHost host(1 << 16);
  std::vector<BufferRef> kept;
  absl::StatusOr<BufferRef> next;
  while ((next = host.allocator->Allocate(0, -1)).ok() && kept.size() < 100000) kept.push_back(*std::move(next));
  EXPECT_EQ(next.status().code(), absl::StatusCode::kResourceExhausted);
}

// A cache line of each buffer describes it: a request of the limit itself would make the process pass it.
TEST(HostAllocator, TheLimitIsExactAndTheMessageSaysWhatIsInUse) {
  LimitedHost host(1 << 20);
  EXPECT_FALSE(host.allocator->Allocate((1 << 20) - 63, -1).ok());
  BufferRef most = host.allocator->Allocate((1 << 20) - 64, -1).value();
  const absl::Status refused = host.allocator->Allocate(1, -1).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "cannot allocate 1 bytes on CPU:0: 1048576 of the memory limit of 1048576 bytes are in use");
  most = BufferRef();
  EXPECT_TRUE(host.allocator->Allocate((1 << 20) - 64, -1).ok()) << "a refusal reserves nothing";
}

TEST(HostAllocator, ABudgetIsSharedByAllocators) {
  LimitedHost a(1 << 20);
  const auto b = MakeHostAllocator("CPU:1", a.budget);
  BufferRef first = a.allocator->Allocate(700000, -1).value();
  EXPECT_FALSE(b->Allocate(700000, -1).ok());
  EXPECT_EQ(b->stats().bytes_in_use, 0);
  first = BufferRef();
  EXPECT_TRUE(b->Allocate(700000, -1).ok());
  EXPECT_TRUE(a.budget->Reserve(1000000));
  EXPECT_FALSE(b->Allocate(700000, -1).ok()) << "direct reservations count too";
  a.budget->Release(1000000);
  EXPECT_EQ(a.budget->in_use(), 0);
}

TEST(HostAllocator, ObjectsAreChargedToo) {
  LimitedHost host(10000);
  {
    const Tensor strings = Tensor::Allocate(DType::kString, Shape::Of({100}), *host.allocator, 3).value();
    EXPECT_GE(host.budget->in_use(), static_cast<int64_t>(100 * sizeof(std::string)));
    EXPECT_EQ(strings.buffer()->node_id(), 3);
    EXPECT_EQ(Tensor::Allocate(DType::kString, Shape::Of({1000}), *host.allocator).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(host.budget->in_use(), 0);
}

TEST(HostAllocator, BadSizesAreAStatus) {
  LimitedHost host(0);
  EXPECT_EQ(host.allocator->Allocate(-1, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(host.allocator->Allocate(INT64_MIN, -1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(host.allocator->Allocate(INT64_MAX, -1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(host.allocator->Allocate(int64_t{1} << 59, -1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(host.budget->in_use(), 0);
}

// A fetched tensor may be kept longer than the session that made it.
TEST(HostAllocator, BuffersMayOutliveTheirAllocator) {
  LimitedHost host(0);
  BufferRef small = host.allocator->Allocate(10, -1).value();
  BufferRef large = host.allocator->Allocate(1 << 20, -1).value();
  host.allocator.reset();
  std::memset(large->data(), 1, 1 << 20);
  EXPECT_GT(host.budget->in_use(), 1 << 20);
  small = BufferRef();
  large = BufferRef();
  EXPECT_EQ(host.budget->in_use(), 0);
}

TEST(HostAllocator, TheDefaultHasNoLimit) {
  EXPECT_EQ(DefaultHostAllocator().memory(), MemoryKind::kHost);
  EXPECT_EQ(&DefaultHostAllocator(), &DefaultHostAllocator());
  EXPECT_TRUE(DefaultHostAllocator().Allocate(1 << 26, -1).ok());
}

TEST(HostAllocator, ManyThreadsAndFreesOnOtherThreads) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 3000;
  constexpr int64_t kLimit = int64_t{64} << 20;
  LimitedHost host(kLimit);
  struct Shelf {
    std::mutex mutex;
    BufferRef buffers[64];
  } shelf;
  std::atomic<int> damaged{0};
  const auto work = [&](int seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kRounds; ++i) {
      const int64_t bytes = int64_t{1} << (random() % 21);
      absl::StatusOr<BufferRef> buffer = host.allocator->Allocate(bytes, seed);
      if (!buffer.ok()) continue;  // the limit was reached
      std::memset((*buffer)->data(), seed, static_cast<size_t>(bytes));
      BufferRef taken = *std::move(buffer);
      {
        std::lock_guard<std::mutex> lock(shelf.mutex);
        std::swap(taken, shelf.buffers[random() % 64]);
      }
      if (!taken) continue;
      const auto* begin = static_cast<const unsigned char*>(taken->data());
      if (begin[0] != taken->node_id() || begin[taken->bytes() - 1] != taken->node_id()) ++damaged;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t <= kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  for (BufferRef& buffer : shelf.buffers) buffer = BufferRef();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(host.budget->in_use(), 0);
  EXPECT_LE(host.budget->peak(), kLimit);
  EXPECT_LE(host.allocator->stats().allocations, kThreads * kRounds);
}

TEST(MemoryBudget, NeverPassesItsLimitWhenHoldersRace) {
  const auto budget = std::make_shared<MemoryBudget>(100);
  std::vector<std::thread> threads;
  std::atomic<bool> passed{false};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      MemoryBudget::Account& account = budget->OpenAccount();
      for (int i = 0; i < 20000; ++i) {
        if (!budget->Reserve(60, account)) continue;
        // Whoever holds 60 of 100 is alone.
        if (MemoryBudget::InUse(account) != 60) passed = true;
        (void)budget->Release(60, account);
      }
      EXPECT_TRUE(budget->CloseAccount(account));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(passed);
  EXPECT_LE(budget->peak(), 100);
  EXPECT_EQ(budget->in_use(), 0);
}

TEST(MemoryBudget, TheLastOfHolderAndBytesIsTold) {
  MemoryBudget budget(0);
  MemoryBudget::Account& account = budget.OpenAccount();
  EXPECT_TRUE(budget.Reserve(10, account));
  EXPECT_FALSE(budget.CloseAccount(account));
  EXPECT_EQ(budget.in_use(), 10);
  EXPECT_TRUE(budget.Release(10, account));
}

constexpr int64_t kPlenty = int64_t{1} << 30;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which switch the caches off
TEST(LargeBlockCache, ReusesBlocksOfTheSameClassUntilTrimmed) {
  LargeBlockCache cache(kPlenty);
  void* block = cache.Take(100000);
  cache.Return(block, 100000);
  EXPECT_GE(cache.cached_bytes(), 100000);
  EXPECT_LE(cache.cached_bytes(), 125000) << "classes lie at most a quarter apart";
  EXPECT_EQ(cache.Take(99000), block);
  EXPECT_EQ(cache.cached_bytes(), 0);
  cache.Return(block, 99000);
  cache.Trim();
  EXPECT_EQ(cache.cached_bytes(), 0);
}

TEST(LargeBlockCache, EverySizeFitsItsBlock) {
  LargeBlockCache cache(kPlenty);
  for (size_t bytes = 1; bytes < (size_t{1} << 22); bytes += bytes / 3 + 1) {
    void* block = cache.Take(bytes);
    std::memset(block, 1, bytes);
    cache.Return(block, bytes);
    EXPECT_GE(cache.cached_bytes(), static_cast<int64_t>(bytes));
    cache.Trim();
  }
}

TEST(LargeBlockCache, HoldsBackNoMoreThanItMay) {
  LargeBlockCache cache(3000);
  void* blocks[] = {cache.Take(2000), cache.Take(2000)};
  for (void* block : blocks) cache.Return(block, 2000);
  EXPECT_EQ(cache.cached_bytes(), 2048);
}

TEST(LargeBlockCache, HugeBlocksAreNotKept) {
  LargeBlockCache cache(kPlenty);
  const size_t bytes = (size_t{64} << 20) + 1;
  cache.Return(cache.Take(bytes), bytes);
  EXPECT_EQ(cache.cached_bytes(), 0);
}
#endif

TEST(ThreadCounter, CountsExactlyOnMoreThreadsThanSlots) {
  ThreadCounter counter;
  constexpr int kThreads = ThreadCounter::kSlots + 9;
  for (int round = 0; round < 2; ++round) {  // the second round takes over the slots of the first
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&counter] {
        for (int i = 0; i < 1000; ++i) counter.Increment();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(counter.Value(), 2 * kThreads * 1000);
}

}  // namespace
}  // namespace thalweg
