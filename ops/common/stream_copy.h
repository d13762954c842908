// Copies that leave the caches alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace thalweg {

// Copies `bytes` bytes to memory that will not be read soon. Other threads may read it after FinishStreaming() on this
// one and whatever orders the two threads otherwise.
inline void StreamCopy(const char* from, char* to, int64_t bytes) {
#if defined(__SSE2__)
  constexpr int64_t kLine = 64;
  const int64_t head = std::min<int64_t>(-reinterpret_cast<intptr_t>(to) & (kLine - 1), bytes);
  std::memcpy(to, from, head);
  int64_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    __m128i line[4];
    std::memcpy(line, from + at, kLine);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + i, line[i]);
  }
  std::memcpy(to + at, from + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

inline void FinishStreaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace thalweg
