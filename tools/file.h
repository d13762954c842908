// Whole files: read at once, and written so that a half-written file never stands under its final name.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/input_file.h"

namespace thalweg::tools {

// Errors as InputFile says.
absl::StatusOr<FileContents> ReadFile(const std::string& path);

class OutputFile {
 public:
  // A temporary file beside `path`; the path itself if that is a device or a pipe.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);
  ~OutputFile();  // without Commit: removes what was written
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Write(absl::string_view bytes);
  uint64_t position() const { return position_; }
  // Flushes, closes and puts the file in its place.
  absl::Status Commit();

 private:
  OutputFile(std::string path, std::string temporary, std::FILE* stream)
      : path_(std::move(path)), temporary_(std::move(temporary)), stream_(stream) {}

  std::string path_;
  std::string temporary_;  // "" when writing to the path itself
  std::FILE* stream_;
  uint64_t position_ = 0;
};

// OK if a file could be created under this name now: asked before work whose result would go there. Opens no pipe or
// device, since whoever is at the other end would take that for all of it.
absl::Status CheckCanWrite(const std::string& path);
absl::Status WriteFile(const std::string& path, absl::string_view bytes);

}  // namespace thalweg::tools
