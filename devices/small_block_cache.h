// A per-thread cache of small aligned blocks, for the scalars and short vectors that flow through most graphs.
//
// Not an allocator of its own: blocks come from the system and go back to it; accounting is the caller's. A block may
// be freed on another thread than the one that took it. Threading: both functions are thread-safe and take no lock.
// Blocks are aligned to kBufferAlignment.
#pragma once

#include <cstddef>

namespace thalweg {

inline constexpr size_t kMaxSmallBlock = 1024;

// Null if the system has no memory. Requires 0 < bytes <= kMaxSmallBlock.
void* TakeSmallBlock(size_t bytes);
// Requires the same `bytes` as the matching TakeSmallBlock.
void ReturnSmallBlock(void* block, size_t bytes);

}  // namespace thalweg
