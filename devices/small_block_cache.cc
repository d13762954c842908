#include "thalweg/devices/small_block_cache.h"

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "thalweg/devices/allocator.h"

namespace thalweg {
namespace {

constexpr size_t kClasses = kMaxSmallBlock / kBufferAlignment;
// Free blocks that one thread keeps of one class: enough for the values alive at once in a wide graph, and at most
// 0.5 MiB per thread over all classes.
constexpr uint32_t kMaxCachedPerClass = 64;

// Sanitizers must see every free, or they miss uses after it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCaching = false;
#else
constexpr bool kCaching = true;
#endif

struct FreeBlock {
  FreeBlock* next;
};

struct FreeList {
  FreeBlock* head;
  uint32_t count;
};

// Trivially destructible, so that blocks may still be returned while other thread-local objects are destroyed.
struct ThreadCache {
  FreeList lists[kClasses];
  enum class State : uint8_t { kUnused, kActive, kEnded } state;
};
// Small enough for the thread-local space that the loader keeps free for libraries, so no look-up is needed.
__attribute__((tls_model("initial-exec"))) thread_local constinit ThreadCache thread_cache = {};

// Gives the blocks of an ending thread back to the system.
struct ThreadCacheDrain {
  ThreadCacheDrain() { thread_cache.state = ThreadCache::State::kActive; }
  ~ThreadCacheDrain() {
    thread_cache.state = ThreadCache::State::kEnded;
    for (FreeList& list : thread_cache.lists) {
      while (list.head != nullptr) std::free(std::exchange(list.head, list.head->next));
      list.count = 0;
    }
  }
};

// True if this thread may keep blocks. Not inlined: happens once per thread.
__attribute__((noinline)) bool ActivateThreadCache() {
  if (!kCaching || thread_cache.state == ThreadCache::State::kEnded) return false;
  thread_local ThreadCacheDrain drain;
  return thread_cache.state == ThreadCache::State::kActive;
}

size_t ClassOf(size_t bytes) { return (bytes - 1) / kBufferAlignment; }

}  // namespace

void* TakeSmallBlock(size_t bytes) {
  const size_t size_class = ClassOf(bytes);
  FreeList& list = thread_cache.lists[size_class];
  if (FreeBlock* block = list.head) {
    list.head = block->next;
    --list.count;
    return block;
  }
  return std::aligned_alloc(kBufferAlignment, (size_class + 1) * kBufferAlignment);
}

void ReturnSmallBlock(void* block, size_t bytes) {
  FreeList& list = thread_cache.lists[ClassOf(bytes)];
  const bool active = thread_cache.state == ThreadCache::State::kActive || ActivateThreadCache();
  if (!active || list.count >= kMaxCachedPerClass) {
    std::free(block);
    return;
  }
  FreeBlock* free_block = static_cast<FreeBlock*>(block);
  free_block->next = list.head;
  list.head = free_block;
  ++list.count;
}

}  // namespace thalweg
