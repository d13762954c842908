#include "thalweg/tools/file.h"

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

}  // namespace

absl::StatusOr<FileContents> ReadFile(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
  return file.ReadAll();
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

absl::Status CheckCanWrite(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return absl::OkStatus();
  return OutputFile::Create(path).status();
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  THALWEG_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, OutputFile::Create(path));
  THALWEG_RETURN_IF_ERROR(file->Write(bytes));
  return file->Commit();
}

}  // namespace thalweg::tools
