#include "thalweg/graph/wire_reader.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace thalweg {

bool WireReader::Fail(absl::string_view what) {
  status_ = absl::DataLossError(absl::StrCat(what, " at byte ", offset()));
  return false;
}

bool WireReader::ReadVarint(uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < 10; ++i) {
    if (i == rest_.size()) return Fail("truncated: the data ends inside a number");
    const uint8_t byte = static_cast<uint8_t>(rest_[i]);
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return Fail("corrupt: a number of more than ten bytes");
}

bool WireReader::ReadTag(uint32_t* number, WireType* type) {
  uint64_t tag = 0;
  if (!ReadVarint(&tag)) return false;
  if (tag > 0xffffffffu || (tag >> 3) == 0) return Fail("corrupt: an impossible field number just before");
  if ((tag & 7) > 5) return Fail("corrupt: an impossible wire type just before");
  *number = static_cast<uint32_t>(tag >> 3);
  *type = static_cast<WireType>(tag & 7);
  return true;
}

bool WireReader::ReadPayload(WireField* field) {
  switch (field->type) {
    case WireType::kVarint:
      return ReadVarint(&field->value);
    case WireType::kFixed64:
    case WireType::kFixed32: {
      const size_t width = field->type == WireType::kFixed64 ? 8 : 4;
      if (rest_.size() < width) return Fail("truncated: the data ends inside a fixed-size field");
      field->value = 0;
      std::memcpy(&field->value, rest_.data(), width);
      rest_.remove_prefix(width);
      return true;
    }
    case WireType::kBytes: {
      uint64_t length = 0;
      if (!ReadVarint(&length)) return false;
      if (length > rest_.size()) {
        return Fail(absl::StrCat("truncated: field ", field->number, " needs ", length, " bytes but only ", rest_.size(), " are left"));
      }
      field->bytes = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return true;
    }
    case WireType::kGroup:
      return SkipGroup();
    case WireType::kGroupEnd:
      break;
  }
  return Fail("corrupt: the end of a group that did not begin, just before");
}

bool WireReader::SkipGroup() {
  for (uint64_t depth = 1; depth > 0;) {
    WireField inner;
    if (!ReadTag(&inner.number, &inner.type)) return false;
    if (inner.type == WireType::kGroup) {
      ++depth;
    } else if (inner.type == WireType::kGroupEnd) {
      --depth;
    } else if (!ReadPayload(&inner)) {
      return false;
    }
  }
  return true;
}

bool WireReader::Next(WireField* field) {
  if (rest_.empty() || !status_.ok()) return false;
  const char* const start = rest_.data();
  if (!ReadTag(&field->number, &field->type) || !ReadPayload(field)) return false;
  field->encoded = absl::string_view(start, static_cast<size_t>(rest_.data() - start));
  return true;
}

}  // namespace thalweg
