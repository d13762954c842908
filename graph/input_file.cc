#include "thalweg/graph/input_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

constexpr size_t kChunk = 64 << 10;

absl::Status SystemError(const std::string& path, int error) {
  const std::string message = absl::StrCat("cannot read '", path, "': ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR: return absl::NotFoundError(message);
    case EACCES:
    case EPERM: return absl::PermissionDeniedError(message);
    default: return absl::InvalidArgumentError(message);
  }
}

size_t PhysicalMemoryBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, errno);
  return InputFile(path, fd);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), head_(std::move(other.head_)) {}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

// Fills `out` unless the file ends before; returns how much there was.
absl::StatusOr<size_t> InputFile::ReadSome(char* out, size_t room) {
  size_t filled = 0;
  while (filled < room) {
    const ssize_t count = read(fd_, out + filled, room - filled);
    if (count == 0) break;
    if (count < 0 && errno != EINTR) return SystemError(path_, errno);
    if (count > 0) filled += static_cast<size_t>(count);
  }
  return filled;
}

absl::StatusOr<absl::string_view> InputFile::Head(size_t limit) {
  head_.resize(limit);
  THALWEG_ASSIGN_OR_RETURN(const size_t got, ReadSome(head_.data(), limit));
  head_.resize(got);
  return absl::string_view(head_);
}

absl::StatusOr<FileContents> InputFile::ReadAll() {
  struct stat info;
  if (fstat(fd_, &info) != 0) return SystemError(path_, errno);
  if (S_ISDIR(info.st_mode)) return SystemError(path_, EISDIR);
  // Files that the system makes up (/proc) say that they are empty.
  if (S_ISREG(info.st_mode) && info.st_size > 0) return ReadKnownSize(static_cast<size_t>(info.st_size));
  return ReadUnknownSize();
}

// Memory of its own mapping: aligned for every element type, and given back whole.
absl::StatusOr<FileContents> InputFile::ReadKnownSize(size_t size) {
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(absl::StrCat("'", path_, "' has ", size, " bytes, which do not fit into memory"));
  };
  if (size > PhysicalMemoryBytes()) return too_large();
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return too_large();
  std::shared_ptr<const void> owner(memory, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  char* const bytes = static_cast<char*>(memory);
  const size_t head = std::min(head_.size(), size);
  std::memcpy(bytes, head_.data(), head);
  THALWEG_ASSIGN_OR_RETURN(const size_t rest, ReadSome(bytes + head, size - head));
  if (head + rest < size) {
    return absl::DataLossError(absl::StrCat("'", path_, "' had ", size, " bytes when it was opened, but ends after ",
                                            head + rest, ": it was cut short while it was read"));
  }
  return FileContents{absl::string_view(bytes, size), std::move(owner)};
}

absl::StatusOr<FileContents> InputFile::ReadUnknownSize() {
  auto content = std::make_shared<std::string>(std::move(head_));
  for (size_t got = kChunk; got == kChunk;) {
    const size_t before = content->size();
    content->resize(before + kChunk);
    THALWEG_ASSIGN_OR_RETURN(got, ReadSome(content->data() + before, kChunk));
    content->resize(before + got);
  }
  const absl::string_view bytes = *content;
  return FileContents{bytes, std::move(content)};
}

}  // namespace thalweg
