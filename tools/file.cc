#include "thalweg/tools/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg::tools {
namespace {

absl::Status FileError(int error, absl::string_view doing, const std::string& path) {
  return absl::Status(absl::ErrnoToStatusCode(error),
                      absl::StrCat("cannot ", doing, " '", path, "': ", std::strerror(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::StatusOr<FileBytes> MapRegularFile(int fd, size_t size, const std::string& path) {
  if (size == 0) return FileBytes{};
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (memory == MAP_FAILED) return FileError(errno, "map", path);
  std::shared_ptr<const void> owner(memory, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  return FileBytes{absl::string_view(static_cast<const char*>(memory), size), std::move(owner)};
}

absl::StatusOr<FileBytes> ReadToEnd(int fd, const std::string& path) {
  auto content = std::make_shared<std::string>();
  char chunk[65536];
  for (;;) {
    const ssize_t got = read(fd, chunk, sizeof chunk);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(errno, "read", path);
    if (got == 0) break;
    content->append(chunk, static_cast<size_t>(got));
  }
  const absl::string_view bytes = *content;
  return FileBytes{bytes, std::move(content)};
}

}  // namespace

absl::StatusOr<FileBytes> ReadFile(const std::string& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return FileError(errno, "open", path);
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return FileError(errno, "look at", path);
  if (S_ISDIR(info.st_mode)) return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a folder, not a file"));
  if (S_ISREG(info.st_mode)) return MapRegularFile(fd.get(), static_cast<size_t>(info.st_size), path);
  return ReadToEnd(fd.get(), path);
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  struct stat info;
  const bool special = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  if (special && S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a folder, not a file"));
  const std::string temporary = special ? "" : absl::StrCat(path, ".", getpid(), ".part");
  std::FILE* stream = std::fopen(special ? path.c_str() : temporary.c_str(), "wb");
  if (stream == nullptr) return FileError(errno, "write", path);
  return std::unique_ptr<OutputFile>(new OutputFile(path, temporary, stream));
}

OutputFile::~OutputFile() {
  if (stream_ == nullptr) return;
  std::fclose(stream_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  if (!bytes.empty() && std::fwrite(bytes.data(), 1, bytes.size(), stream_) != bytes.size()) {
    return FileError(errno, "write", path_);
  }
  position_ += bytes.size();
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  std::FILE* stream = std::exchange(stream_, nullptr);
  if (std::fclose(stream) != 0) {
    const int error = errno;
    if (!temporary_.empty()) unlink(temporary_.c_str());
    return FileError(error, "write", path_);
  }
  if (!temporary_.empty() && std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(temporary_.c_str());
    return FileError(error, "write", path_);
  }
  return absl::OkStatus();
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  THALWEG_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, OutputFile::Create(path));
  THALWEG_RETURN_IF_ERROR(file->Write(bytes));
  return file->Commit();
}

}  // namespace thalweg::tools
