// A cache of large free blocks by size class: fresh pages from the system cost far more than the arithmetic on them.
//
// Size classes lie at most a quarter apart. Blocks above 64 MiB, and blocks that would take the cache past its byte
// limit, go straight to the system. Threading: all methods are thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace thalweg {

class LargeBlockCache {
 public:
  // Holds back at most `max_cached_bytes` of free memory.
  explicit LargeBlockCache(int64_t max_cached_bytes) : max_cached_bytes_(max_cached_bytes) {}
  LargeBlockCache(const LargeBlockCache&) = delete;
  LargeBlockCache& operator=(const LargeBlockCache&) = delete;
  ~LargeBlockCache() { Trim(); }

  // A block of at least `bytes` bytes aligned to kBufferAlignment, or null if the system has no memory, even after all
  // free blocks were given back.
  // Requires bytes > 0 and bytes <= PTRDIFF_MAX.
  void* Take(size_t bytes);
  // Requires the same `bytes` as the matching Take.
  void Return(void* block, size_t bytes);
  // Gives all free blocks back to the system.
  void Trim();

  int64_t cached_bytes() const { return cached_bytes_.load(std::memory_order_relaxed); }

 private:
  // 1 KiB to 64 MiB, four classes per doubling.
  static constexpr int kClasses = 64;
  struct FreeList {
    std::mutex mutex;
    std::vector<void*> blocks;  // last in, first out: the block most likely still in the processor's cache
  };

  void* TakeFromSystem(size_t bytes);

  const int64_t max_cached_bytes_;
  std::array<FreeList, kClasses> lists_;
  std::atomic<int64_t> cached_bytes_{0};
};

}  // namespace thalweg
