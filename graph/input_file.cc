#include "thalweg/graph/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

constexpr size_t kMapFrom = 256 << 10;

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

absl::Status ReadAll(int fd, const std::string& path, std::string* out) {
  char buffer[64 << 10];
  while (true) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count == 0) return absl::OkStatus();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path, errno);
    out->append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SystemError(path, errno);
  const auto close_file = absl::MakeCleanup([fd] { close(fd); });
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError(path, errno);
  if (S_ISDIR(info.st_mode)) return SystemError(path, EISDIR);

  std::shared_ptr<MappedFile> file(new MappedFile);
  if (S_ISREG(info.st_mode) && static_cast<size_t>(info.st_size) >= kMapFrom) {
    const size_t size = static_cast<size_t>(info.st_size);
    void* const mapping = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) return SystemError(path, errno);
    file->mapping_ = mapping;
    file->bytes_ = absl::string_view(static_cast<const char*>(mapping), size);
  } else {
    THALWEG_RETURN_IF_ERROR(ReadAll(fd, path, &file->copy_));
    file->bytes_ = file->copy_;
  }
  return std::shared_ptr<const MappedFile>(std::move(file));
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) munmap(mapping_, bytes_.size());
}

void MappedFile::ReleasePages(size_t end) const {
  if (mapping_ == nullptr) return;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t whole_pages = std::min(end, bytes_.size()) / page * page;
  // Only advice: clean pages of a private read-only mapping come back from the file when they are touched again.
  if (whole_pages > 0) madvise(mapping_, whole_pages, MADV_DONTNEED);
}

}  // namespace thalweg
