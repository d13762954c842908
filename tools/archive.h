// .npz archives of tensors: reading all or one, writing as values come.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/tools/npy.h"
#include "thalweg/tools/zip.h"

namespace thalweg::tools {

class TensorArchive {
 public:
  static absl::StatusOr<TensorArchive> Open(const std::string& path);
  // Without the ".npy" that entries end in.
  std::vector<std::string> keys() const;
  bool Has(absl::string_view key) const { return zip_.Has(absl::StrCat(key, ".npy")) || zip_.Has(key); }
  // NotFound lists the keys there are.
  absl::StatusOr<NpyArray> Read(absl::string_view key) const;

 private:
  TensorArchive(ZipReader zip, std::string path) : zip_(std::move(zip)), path_(std::move(path)) {}
  ZipReader zip_;
  std::string path_;
};

// One array from a .npy file.
absl::StatusOr<NpyArray> ReadNpyFile(const std::string& path);

// Writes fetched values: to a .npz archive under their keys, or, if the path ends in ".npy", one value alone.
class TensorWriter {
 public:
  static absl::StatusOr<std::unique_ptr<TensorWriter>> Create(const std::string& path);
  // A key that was written before is left out (a tensor fetched twice). InvalidArgument for a second value of a .npy.
  absl::Status Add(const std::string& key, const Tensor& tensor);
  // Without it nothing is written.
  absl::Status Finish();

 private:
  explicit TensorWriter(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::unique_ptr<ZipWriter> zip_;      // of an archive
  std::unique_ptr<OutputFile> single_;  // of a .npy
  std::vector<std::string> keys_;
};

}  // namespace thalweg::tools
