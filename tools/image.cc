#include "thalweg/tools/image.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/memory.h"

namespace thalweg::tools {
namespace {

// Frees what libpng holds, however the function is left.
class PngImage {
 public:
  PngImage() { image_.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image_); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  png_image* get() { return &image_; }
  png_image* operator->() { return &image_; }

 private:
  png_image image_{};
};

uint8_t Luma(const uint8_t* rgba) {
  return static_cast<uint8_t>(std::lround(0.2126 * rgba[0] + 0.7152 * rgba[1] + 0.0722 * rgba[2]));
}

}  // namespace

absl::StatusOr<Tensor> ReadPng(const std::string& path, int channels) {
  THALWEG_ASSIGN_OR_RETURN(const FileContents file, ReadFile(path));
  if (file.bytes.size() < 8 || png_sig_cmp(reinterpret_cast<png_const_bytep>(file.bytes.data()), 0, 8) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a PNG image"));
  }
  PngImage image;
  if (!png_image_begin_read_from_memory(image.get(), file.bytes.data(), file.bytes.size())) {
    return absl::DataLossError(absl::StrCat("'", path, "' is a broken PNG image: ", image->message));
  }
  if (channels == 0) channels = image->format & PNG_FORMAT_FLAG_COLOR ? 3 : 1;
  const int64_t pixels = static_cast<int64_t>(image->width) * image->height;  // both below 2^31
  THALWEG_RETURN_IF_ERROR(
      CheckFitsMemory(pixels > (int64_t{1} << 48) ? INT64_MAX : pixels * 8, absl::StrCat("'", path, "'")));
  // Every image is read with four channels, so that no colour is mixed into a background or converted on the way.
  image->format = PNG_FORMAT_RGBA;
  std::vector<uint8_t> rgba(static_cast<size_t>(pixels) * 4);
  if (!png_image_finish_read(image.get(), nullptr, rgba.data(), 0, nullptr)) {
    return absl::DataLossError(absl::StrCat("'", path, "' is a broken PNG image: ", image->message));
  }
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({image->height, image->width, channels}));
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(DType::kUInt8, shape));
  uint8_t* out = tensor.mutable_flat<uint8_t>().data();
  for (int64_t i = 0; i < pixels; ++i) {
    const uint8_t* pixel = &rgba[static_cast<size_t>(i) * 4];
    if (channels == 1) out[i] = Luma(pixel);
    else std::copy(pixel, pixel + channels, out + i * channels);
  }
  return tensor;
}

}  // namespace thalweg::tools
