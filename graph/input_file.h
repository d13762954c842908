// Reading files, and whatever else can be opened, without mapping them.
//
// The bytes are read into memory of their own: whoever shortens a mapped file makes a later access to the missing part end
// the process (SIGBUS), long after loading and in any thread. Here a file that is shorter than it said is DataLoss, and
// what happens to it after it was read touches nobody.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
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

  // When it was opened; nullopt for what has no size before it is read (a pipe, a file that the system makes up).
  std::optional<uint64_t> size() const { return size_; }
  // Bytes [offset, offset + count). Requires a known size and a range within it.
  absl::Status ReadAt(uint64_t offset, char* out, size_t count) const;
  // Everything; to be called once if the size is not known.
  absl::StatusOr<FileContents> ReadAll() const;

 private:
  InputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::StatusOr<FileContents> ReadUnknownSize() const;

  std::string path_;
  int fd_;
  std::optional<uint64_t> size_;
};

// Room for `count` bytes that are not set to anything, or ResourceExhausted if this machine cannot have them.
absl::StatusOr<std::shared_ptr<char[]>> AllocateForReading(uint64_t count);

}  // namespace thalweg
