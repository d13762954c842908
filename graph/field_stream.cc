#include "thalweg/graph/field_stream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

constexpr size_t kWindow = 256 << 10;
// The longest tag and length.
constexpr size_t kLongestHeader = 20;
// Fields from this size on get memory of their own.
constexpr uint64_t kLargeField = 64 << 10;

}  // namespace

FieldStream::FieldStream(absl::string_view message, std::shared_ptr<const void> owner)
    : file_(nullptr), size_(message.size()), owner_(std::move(owner)), window_(message) {}

FieldStream::FieldStream(const InputFile& file) : file_(&file), size_(*file.size()) {}

bool FieldStream::Fail(absl::Status status) {
  status_ = std::move(status);
  return false;
}

// A fault of a reader that began at offset_, said as of the whole message.
bool FieldStream::FailAt(const WireReader& reader) {
  return Fail(offset_ == 0
                  ? reader.status()
                  : absl::Status(reader.status().code(), absl::StrCat("in the field that starts at byte ", offset_,
                                                                      ": ", reader.status().message())));
}

bool FieldStream::Next(StreamField* field, bool contents) {
  if (offset_ == size_ || !status_.ok()) return false;
  field->wire = WireField();  // no view of a window that is gone
  field->offset = offset_;
  return file_ == nullptr ? NextInMemory(field) : NextInFile(field, contents);
}

bool FieldStream::NextInMemory(StreamField* field) {
  WireReader reader(window_.substr(offset_));
  if (!reader.Next(&field->wire)) return FailAt(reader);
  field->owner = owner_;
  offset_ += reader.offset();
  return true;
}

bool FieldStream::NextInFile(StreamField* field, bool contents) {
  if (!HaveWindow(kLongestHeader)) return false;
  field->owner = nullptr;
  const absl::string_view start = window_.substr(offset_ - window_begin_);
  const std::optional<uint64_t> encoded_size = EncodedSizeOfBytesField(start);
  if (encoded_size && *encoded_size > size_ - offset_) {
    return Fail(absl::DataLossError(absl::StrCat("truncated: the field that starts at byte ", offset_, " takes ",
                                                 *encoded_size, " bytes, but only ", size_ - offset_, " are left")));
  }
  if (encoded_size && *encoded_size >= kLargeField) {
    if (contents) return ReadLarge(*encoded_size, field);
    WireReader(start).ReadTag(&field->wire.number, &field->wire.type);
    offset_ += *encoded_size;
    return true;
  }
  if (!HaveWindow(encoded_size ? *encoded_size : kLargeField)) return false;
  WireReader reader(window_.substr(offset_ - window_begin_));
  if (!reader.Next(&field->wire)) return FailAt(reader);
  offset_ += reader.offset();
  return true;
}

bool FieldStream::ReadLarge(uint64_t encoded_size, StreamField* field) {
  absl::StatusOr<std::shared_ptr<char[]>> memory = AllocateForReading(encoded_size);
  if (!memory.ok()) return Fail(memory.status());
  if (absl::Status status = file_->ReadAt(offset_, memory->get(), encoded_size); !status.ok())
    return Fail(std::move(status));
  WireReader reader(absl::string_view(memory->get(), encoded_size));
  if (!reader.Next(&field->wire)) return FailAt(reader);
  field->owner = *std::move(memory);
  offset_ += encoded_size;
  return true;
}

// Makes the window hold the next `count` bytes, or those that are left; at most kWindow of them.
bool FieldStream::HaveWindow(uint64_t count) {
  const uint64_t wanted = std::min<uint64_t>(std::min<uint64_t>(count, kWindow), size_ - offset_);
  const bool inside = offset_ >= window_begin_ && offset_ + wanted <= window_begin_ + window_.size();
  if (inside) return true;
  const size_t room = static_cast<size_t>(std::min<uint64_t>(kWindow, size_ - offset_));
  buffer_.resize(room);
  if (absl::Status status = file_->ReadAt(offset_, buffer_.data(), room); !status.ok()) return Fail(std::move(status));
  window_begin_ = offset_;
  window_ = buffer_;
  return true;
}

}  // namespace thalweg
