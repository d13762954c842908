// A file's bytes, read-only: mapped if it is large, read if it is small.
//
// The bytes live as long as the object. Whoever truncates a file while it is mapped makes later reads of the missing
// part fail hard (SIGBUS); that is why small files, which tools rewrite in place most often, are not mapped.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thalweg {

class MappedFile {
 public:
  // NotFound, PermissionDenied or InvalidArgument (a folder) naming the path and the system's reason.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return bytes_; }
  // Says that bytes [0, end) will not be read soon: their pages need not stay in memory. They stay readable.
  void ReleasePages(size_t end) const;

 private:
  MappedFile() = default;

  absl::string_view bytes_;
  std::string copy_;         // of a small file
  void* mapping_ = nullptr;  // of a large one
};

}  // namespace thalweg
