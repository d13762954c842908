#include "thalweg/graph/utf8.h"

#include <algorithm>
#include <cstdint>

namespace thalweg {
namespace {

// The bytes of the character that starts at the front of a text; 0 if it is malformed: cut, longer than need be, half of a
// surrogate pair or past U+10FFFF.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  // The first byte after the lead has a range of its own after some leads.
  const uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  if (std::none_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) >= 0x80; })) return true;
  while (!text.empty()) {
    const size_t bytes = CharacterBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace thalweg
