#include "thalweg/graph/wire_reader.h"

#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

constexpr size_t kMaxGroupNesting = 100;

}  // namespace

bool WireReader::Truncated(absl::string_view what) {
  status_ = absl::DataLossError(absl::StrCat("truncated at byte ", offset(), ": ", what));
  return false;
}

bool WireReader::Corrupt(absl::string_view what) {
  status_ = absl::DataLossError(absl::StrCat("corrupt at byte ", offset(), ": ", what));
  return false;
}

bool WireReader::ReadVarint(uint64_t* value) {
  uint64_t result = 0;
  for (size_t i = 0; i < 10; ++i) {
    if (i == rest_.size()) return Truncated("the data ends inside a number");
    const uint8_t byte = static_cast<uint8_t>(rest_[i]);
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return Corrupt("a number of more than ten bytes");
}

bool WireReader::ReadTag(uint32_t* number, WireType* type) {
  uint64_t tag = 0;
  if (!ReadVarint(&tag)) return false;
  if (tag > 0xffffffffu || (tag >> 3) == 0) return Corrupt("the tag before it has an impossible field number");
  if ((tag & 7) > 5) return Corrupt("the tag before it has an impossible wire type");
  *number = static_cast<uint32_t>(tag >> 3);
  *type = static_cast<WireType>(tag & 7);
  return true;
}

std::optional<uint64_t> EncodedSizeOfBytesField(absl::string_view start) {
  WireReader reader(start);
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t length = 0;
  if (!reader.ReadTag(&number, &type) || type != WireType::kBytes || !reader.ReadVarint(&length)) return std::nullopt;
  return length > UINT64_MAX - reader.offset() ? UINT64_MAX : reader.offset() + length;
}

bool WireReader::ReadPayload(WireField* field) {
  switch (field->type) {
    case WireType::kVarint: return ReadVarint(&field->value);
    case WireType::kFixed64:
    case WireType::kFixed32: {
      const size_t width = field->type == WireType::kFixed64 ? 8 : 4;
      if (rest_.size() < width) return Truncated("the data ends inside a fixed-size field");
      field->value = 0;
      std::memcpy(&field->value, rest_.data(), width);
      rest_.remove_prefix(width);
      return true;
    }
    case WireType::kBytes: {
      uint64_t length = 0;
      if (!ReadVarint(&length)) return false;
      if (length > rest_.size()) {
        return Truncated(
            absl::StrCat("field ", field->number, " needs ", length, " bytes but only ", rest_.size(), " are left"));
      }
      field->bytes = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return true;
    }
    case WireType::kGroup: return SkipGroup(field->number);
    case WireType::kGroupEnd: break;
  }
  return Corrupt("the tag before it ends a group that did not begin");
}

bool WireReader::SkipGroup(uint32_t number) {
  absl::InlinedVector<uint32_t, 8> open = {number};
  while (!open.empty()) {
    WireField inner;
    if (!ReadTag(&inner.number, &inner.type)) return false;
    if (inner.type == WireType::kGroup) {
      if (open.size() == kMaxGroupNesting)
        return Corrupt(absl::StrCat("groups nest deeper than ", kMaxGroupNesting, " levels"));
      open.push_back(inner.number);
    } else if (inner.type == WireType::kGroupEnd) {
      if (inner.number != open.back()) return Corrupt("the tag before it ends another group than the one that is open");
      open.pop_back();
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
