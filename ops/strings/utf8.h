// Characters of UTF-8 text, malformed text included: a character starts at every byte that does not continue another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace thalweg::strings {

inline bool ContinuesCharacter(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

// One decoded character, and the bytes that it takes. `code` is -1 if they are malformed.
struct DecodedCharacter {
  int32_t code = -1;
  size_t bytes = 1;
};

// The character that starts at `at`, which is inside of `text`. Of malformed text, the longest part that could have begun
// a character counts as one.
inline DecodedCharacter DecodeCharacter(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {-1, 1};
  int32_t code = lead & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= text.size() || !ContinuesCharacter(text[at + i])) return {-1, i};
    // Second bytes that would make the form too long, a surrogate, or a number beyond Unicode.
    const bool bad = i == 1 && ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f) ||
                                (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f));
    if (bad) return {-1, 1};
    code = code << 6 | (byte(i) & 0x3f);
  }
  return {code, length};
}

// Requires 0 <= code <= 0x10ffff.
inline void AppendCharacter(int32_t code, std::string* out) {
  const auto put = [out](int32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
    return;
  }
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

inline constexpr int32_t kReplacementCharacter = 0xfffd;

inline int64_t CountCharacters(absl::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += ContinuesCharacter(byte) ? 0 : 1;
  return count;
}

// The place after the character that starts at `at`, which is inside of `text`.
inline size_t NextCharacter(absl::string_view text, size_t at) {
  do ++at;
  while (at < text.size() && ContinuesCharacter(text[at]));
  return at;
}

// The place before `count` characters counted back from `at`; false if there are fewer.
inline bool StepBack(absl::string_view text, int64_t count, size_t* at) {
  for (; count > 0; --count) {
    if (*at == 0) return false;
    do --*at;
    while (*at > 0 && ContinuesCharacter(text[*at]));
  }
  return true;
}

}  // namespace thalweg::strings
