// The outermost fields of a message in memory or in a file, one after the other.
//
// Of a file only a window is held: small fields are parsed there, a large one gets memory of its own, which views of its
// contents may share. So reading takes the memory of what is kept, not of the file. Groups, which no GraphDef has, are
// skipped over if they fit into the window.
// Not thread-safe. Errors: those of WireReader and InputFile; offsets count from the start of the message.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/input_file.h"
#include "thalweg/graph/wire_reader.h"

namespace thalweg {

struct StreamField {
  WireField wire;       // its views are valid until the next call, or as long as `owner` lives
  uint64_t offset = 0;  // of the field in the message
  std::shared_ptr<const void> owner;  // null: whatever is kept must be copied
};

class FieldStream {
 public:
  // `owner` keeps the bytes alive; null if nobody can say how long they live.
  FieldStream(absl::string_view message, std::shared_ptr<const void> owner);
  // Requires a known size; borrows the file.
  explicit FieldStream(const InputFile& file);

  // False at the end and on a fault. Without `contents` only number and type of large fields are set.
  bool Next(StreamField* field, bool contents = true);
  void Rewind() { offset_ = 0; }
  const absl::Status& status() const { return status_; }

 private:
  bool NextInMemory(StreamField* field);
  bool NextInFile(StreamField* field, bool contents);
  bool ReadLarge(uint64_t encoded_size, StreamField* field);
  bool HaveWindow(uint64_t count);
  bool Fail(absl::Status status);
  bool FailAt(const WireReader& reader);

  const InputFile* const file_;  // null: in memory
  const uint64_t size_;
  uint64_t offset_ = 0;  // of the next field
  std::shared_ptr<const void> owner_;
  absl::string_view window_;  // of a message in memory: all of it
  uint64_t window_begin_ = 0;
  std::string buffer_;  // behind the window of a file
  absl::Status status_;
};

}  // namespace thalweg
