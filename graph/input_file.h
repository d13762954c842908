// Reading a file, or anything else that can be opened, to its end.
//
// The bytes are read into memory of their own, not mapped: whoever shortens a mapped file makes a later access to the
// missing part end the process (SIGBUS), long after loading and in any thread. A file that is shorter than it said when
// it is read is DataLoss, and what happens to it afterwards touches nobody.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thalweg {

// Bytes with whoever keeps them alive.
struct FileContents {
  absl::string_view bytes;
  std::shared_ptr<const void> owner;
};

// Threading: one thread at a time. Errors name the path and the system's reason: NotFound, PermissionDenied,
// InvalidArgument (a folder, a disk that fails), DataLoss (cut short meanwhile), ResourceExhausted (larger than memory).
class InputFile {
 public:
  static absl::StatusOr<InputFile> Open(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  // The first bytes, at most `limit` of them; they are part of what ReadAll returns. To be called once, before it.
  absl::StatusOr<absl::string_view> Head(size_t limit);
  absl::StatusOr<FileContents> ReadAll();

 private:
  InputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::StatusOr<FileContents> ReadKnownSize(size_t size);
  absl::StatusOr<FileContents> ReadUnknownSize();
  absl::StatusOr<size_t> ReadSome(char* out, size_t room);

  std::string path_;
  int fd_;
  std::string head_;
};

}  // namespace thalweg
