#include "thalweg/graph/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

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

uint64_t PhysicalMemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

absl::StatusOr<std::shared_ptr<char[]>> AllocateForReading(uint64_t count) {
  char* const memory = count <= PhysicalMemoryBytes() ? new (std::nothrow) char[count] : nullptr;
  if (memory == nullptr) return absl::ResourceExhaustedError(absl::StrCat(count, " bytes do not fit into memory"));
  return std::shared_ptr<char[]>(memory);
}

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, errno);
  InputFile file(path, fd);
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(path, errno);
  if (S_ISDIR(info.st_mode)) return SystemError(path, EISDIR);
  // Files that the system makes up (/proc) say that they are empty.
  if (S_ISREG(info.st_mode) && info.st_size > 0) file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status InputFile::ReadAt(uint64_t offset, char* out, size_t count) const {
  for (size_t filled = 0; filled < count;) {
    const ssize_t got = pread(fd_, out + filled, count - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno != EINTR) return SystemError(path_, errno);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat("'", path_, "' had ", *size_,
                                              " bytes when it was opened, but ends after ", offset + filled,
                                              ": it was cut short while it was read"));
    }
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::StatusOr<FileContents> InputFile::ReadAll() const {
  if (!size_) return ReadUnknownSize();
  absl::StatusOr<std::shared_ptr<char[]>> memory = AllocateForReading(*size_);
  if (!memory.ok())
    return absl::Status(memory.status().code(), absl::StrCat("'", path_, "': ", memory.status().message()));
  THALWEG_RETURN_IF_ERROR(ReadAt(0, memory->get(), *size_));
  return FileContents{absl::string_view(memory->get(), *size_), *std::move(memory)};
}

absl::StatusOr<FileContents> InputFile::ReadUnknownSize() const {
  auto content = std::make_shared<std::string>();
  char chunk[kChunk];
  while (true) {
    const ssize_t got = read(fd_, chunk, sizeof(chunk));
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return SystemError(path_, errno);
    if (got > 0) content->append(chunk, static_cast<size_t>(got));
  }
  const absl::string_view bytes = *content;
  return FileContents{bytes, std::move(content)};
}

}  // namespace thalweg
