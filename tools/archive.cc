#include "thalweg/tools/archive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {
constexpr size_t kMaxKeyList = 400;  // characters of a message
}  // namespace

absl::StatusOr<TensorArchive> TensorArchive::Open(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(FileContents file, ReadFile(path));
  THALWEG_ASSIGN_OR_RETURN(ZipReader zip, ZipReader::Open(std::move(file), path));
  return TensorArchive(std::move(zip), path);
}

std::vector<std::string> TensorArchive::keys() const {
  std::vector<std::string> keys = zip_.names();
  for (std::string& key : keys) key = std::string(absl::StripSuffix(key, ".npy"));
  return keys;
}

absl::StatusOr<NpyArray> TensorArchive::Read(absl::string_view key) const {
  const std::string with_suffix = absl::StrCat(key, ".npy");
  const std::string entry = zip_.Has(with_suffix) ? with_suffix : std::string(key);
  if (!zip_.Has(entry)) {
    return absl::NotFoundError(
        absl::StrCat(path_, ": no array '", key, "'; there are: ", Ellipsis(absl::StrJoin(keys(), ", "), kMaxKeyList)));
  }
  THALWEG_ASSIGN_OR_RETURN(const FileContents content, zip_.Read(entry));
  return ParseNpy(content.bytes, content.owner, absl::StrCat(path_, "#", key));
}

absl::StatusOr<NpyArray> ReadNpyFile(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(const FileContents file, ReadFile(path));
  return ParseNpy(file.bytes, file.owner, path);
}

absl::StatusOr<std::unique_ptr<TensorWriter>> TensorWriter::Create(const std::string& path) {
  std::unique_ptr<TensorWriter> writer(new TensorWriter(path));
  if (absl::EndsWith(path, ".npy")) {
    THALWEG_ASSIGN_OR_RETURN(writer->single_, OutputFile::Create(path));
  } else {
    THALWEG_ASSIGN_OR_RETURN(writer->zip_, ZipWriter::Create(path));
  }
  return writer;
}

absl::Status TensorWriter::Add(const std::string& key, const Tensor& tensor) {
  if (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<NpyFile>> file = NpyFromTensor(tensor);
  if (!file.ok()) return absl::Status(file.status().code(), absl::StrCat(key, ": ", file.status().message()));
  if (single_ != nullptr && !keys_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path_, "' holds one array, but several values were fetched; write a .npz"));
  }
  keys_.push_back(key);
  const absl::string_view parts[] = {(*file)->header, (*file)->data};
  if (zip_ != nullptr) return zip_->Add(absl::StrCat(key, ".npy"), parts);
  for (absl::string_view part : parts) THALWEG_RETURN_IF_ERROR(single_->Write(part));
  return absl::OkStatus();
}

absl::Status TensorWriter::Finish() { return zip_ != nullptr ? zip_->Finish() : single_->Commit(); }

}  // namespace thalweg::tools
