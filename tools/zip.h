// Zip archives as NumPy uses them (.npz): entries stored or deflated, sizes beyond 4 GiB by the zip64 extension.
//
// Reading maps the file and trusts nothing: every offset and length is checked against the file, sizes are bounded by
// what deflate can produce before memory is allocated, checksums are verified. Encrypted and multi-part archives and
// other compression methods are refused by name. Threading: a reader is immutable after opening; a writer is for one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/tools/file.h"

namespace thalweg::tools {

class ZipReader {
 public:
  // Takes a file that is a zip archive. InvalidArgument or DataLoss otherwise.
  static absl::StatusOr<ZipReader> Open(FileContents file, std::string label);

  // In the order of the archive's directory; of entries with one name the last one counts.
  std::vector<std::string> names() const;
  bool Has(absl::string_view name) const { return index_.contains(name); }
  // The content of an entry: a view of the file if it is stored, else inflated. NotFound lists what there is.
  absl::StatusOr<FileContents> Read(absl::string_view name) const;

 private:
  struct Entry {
    std::string name;
    uint16_t method = 0;
    uint16_t flags = 0;
    uint32_t crc = 0;
    uint64_t compressed = 0;
    uint64_t size = 0;
    uint64_t offset = 0;
  };
  absl::Status ReadDirectory();
  absl::Status ReadEntry(size_t* position, size_t end);
  absl::StatusOr<absl::string_view> CompressedData(const Entry& entry) const;

  FileContents file_;
  std::string label_;
  std::vector<Entry> entries_;
  absl::flat_hash_map<std::string, size_t> index_;  // name -> entry
};

// Writes an archive of stored entries to a temporary file next to `path`, which Finish renames to it; without Finish
// nothing is left behind.
class ZipWriter {
 public:
  static absl::StatusOr<std::unique_ptr<ZipWriter>> Create(const std::string& path);
  // The entry's content is the parts one after the other.
  absl::Status Add(const std::string& name, absl::Span<const absl::string_view> parts);
  absl::Status Finish();

 private:
  struct Written {
    std::string name;
    uint32_t crc;
    uint64_t size;
    uint64_t offset;
  };
  explicit ZipWriter(std::unique_ptr<OutputFile> out) : out_(std::move(out)) {}

  std::unique_ptr<OutputFile> out_;
  std::vector<Written> written_;
};

}  // namespace thalweg::tools
