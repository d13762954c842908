// Walks the fields of one protobuf message in memory without copying: the level below the generated classes, for
// reading a graph node by node and for leaving large tensor contents where they are.
//
// Sizes are 64-bit (a file may exceed what one protobuf message may hold). Every length is checked against what is
// left. A WireReader borrows its bytes. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace thalweg {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kGroupEnd = 4, kFixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;         // of kVarint, kFixed64, kFixed32
  absl::string_view bytes;    // of kBytes: the content; of kGroup: unspecified
  absl::string_view encoded;  // the whole field as it stands in the message, tag included

  bool Is(uint32_t field_number, WireType field_type) const { return number == field_number && type == field_type; }
};

class WireReader {
 public:
  explicit WireReader(absl::string_view message) : rest_(message), size_(message.size()) {}

  // Reads the next field; groups are skipped over as one field. False at the end of the message and on a fault.
  bool Next(WireField* field);

  // The tag alone; false as Next.
  bool ReadTag(uint32_t* number, WireType* type);

  // Where in the message the next field starts.
  uint64_t offset() const { return size_ - rest_.size(); }
  // OK unless Next has met a fault: DataLoss saying what, and at which offset of the message.
  const absl::Status& status() const { return status_; }

 private:
  friend std::optional<uint64_t> EncodedSizeOfBytesField(absl::string_view start);
  bool ReadVarint(uint64_t* value);
  bool ReadPayload(WireField* field);
  bool SkipGroup(uint32_t number);
  bool Truncated(absl::string_view what);
  bool Corrupt(absl::string_view what);

  absl::string_view rest_;
  uint64_t size_;
  absl::Status status_;
};

// How many bytes the field at `start` takes, tag and length included, if it is of type kBytes and its length is there;
// UINT64_MAX if that overflows.
std::optional<uint64_t> EncodedSizeOfBytesField(absl::string_view start);

}  // namespace thalweg
