// How much a test does: less where sanitizers make everything many times slower.
#pragma once

#include <cstdlib>

namespace thalweg::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(_GLIBCXX_TSAN)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The number in the environment variable, if there is one; else by the build.
inline int Effort(const char* variable, int plain, int sanitized) {
  const char* text = std::getenv(variable);
  if (text != nullptr) return std::atoi(text);
  return kSanitized ? sanitized : plain;
}

}  // namespace thalweg::testing
