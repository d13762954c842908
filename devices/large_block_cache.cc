#include "thalweg/devices/large_block_cache.h"

#include <sys/mman.h>

#include <bit>
#include <cstdlib>

#include "thalweg/devices/allocator.h"

namespace thalweg {
namespace {

constexpr size_t kUnit = 1024;
constexpr size_t kMaxCachedBlock = size_t{64} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLeastHuge = 2 * kHugePage;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCaching = false;  // sanitizers must see every free
#else
constexpr bool kCaching = true;
#endif

// Class i holds blocks of (i + 1) units up to four units, then four steps per doubling: 5, 6, 7, 8, 10, 12, 14, 16, 20.
int ClassOf(size_t bytes) {
  const size_t last_unit = (bytes - 1) / kUnit;
  if (last_unit < 4) return static_cast<int>(last_unit);
  const int shift = std::bit_width(last_unit) - 3;
  return 4 * shift + static_cast<int>(last_unit >> shift);
}

size_t ClassBytes(int size_class) {
  if (size_class < 4) return (size_class + 1) * kUnit;
  const int shift = (size_class - 4) / 4;
  return static_cast<size_t>(size_class - 4 * shift + 1) * kUnit << shift;
}

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Large blocks ask for huge pages: a kernel may take longer to be given fresh memory page by page than to fill it. What does not fill
// a huge page stays in small ones, so that no more memory is taken than was asked for.
void* Allocate(size_t bytes) {
  if (bytes < kLeastHuge) return std::aligned_alloc(kBufferAlignment, bytes);
  void* block = std::aligned_alloc(kHugePage, RoundUp(bytes, kHugePage));
  if (block != nullptr) madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);  // a wish: refused where there are none
  return block;
}

}  // namespace

void* LargeBlockCache::Take(size_t bytes) {
  if (bytes > kMaxCachedBlock) return TakeFromSystem(RoundUp(bytes, kBufferAlignment));
  const int size_class = ClassOf(bytes);
  const size_t block_bytes = ClassBytes(size_class);
  FreeList& list = lists_[size_class];
  {
    std::lock_guard<std::mutex> lock(list.mutex);
    if (!list.blocks.empty()) {
      void* block = list.blocks.back();
      list.blocks.pop_back();
      cached_bytes_.fetch_sub(static_cast<int64_t>(block_bytes), std::memory_order_relaxed);
      return block;
    }
  }
  return TakeFromSystem(block_bytes);
}

void* LargeBlockCache::TakeFromSystem(size_t bytes) {
  void* block = Allocate(bytes);
  if (block != nullptr || cached_bytes() == 0) return block;
  Trim();
  return Allocate(bytes);
}

void LargeBlockCache::Return(void* block, size_t bytes) {
  if (!kCaching || bytes > kMaxCachedBlock) {
    std::free(block);
    return;
  }
  const int size_class = ClassOf(bytes);
  const int64_t block_bytes = static_cast<int64_t>(ClassBytes(size_class));
  if (cached_bytes_.fetch_add(block_bytes, std::memory_order_relaxed) + block_bytes > max_cached_bytes_) {
    cached_bytes_.fetch_sub(block_bytes, std::memory_order_relaxed);
    std::free(block);
    return;
  }
  FreeList& list = lists_[size_class];
  std::lock_guard<std::mutex> lock(list.mutex);
  list.blocks.push_back(block);
}

void LargeBlockCache::Trim() {
  for (int size_class = 0; size_class < kClasses; ++size_class) {
    std::vector<void*> blocks;
    {
      std::lock_guard<std::mutex> lock(lists_[size_class].mutex);
      blocks.swap(lists_[size_class].blocks);
    }
    for (void* block : blocks) std::free(block);
    cached_bytes_.fetch_sub(static_cast<int64_t>(blocks.size() * ClassBytes(size_class)), std::memory_order_relaxed);
  }
}

}  // namespace thalweg
