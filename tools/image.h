// PNG images as tensors.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "thalweg/devices/tensor.h"

namespace thalweg::tools {

// uint8 [height, width, channels] with the stored values (16-bit samples lose their low byte, palettes are resolved).
// channels: 1, 3, 4, or 0 for as many as the file has (1 or 3; transparency is dropped). A colour image asked for as
// one channel becomes its luma (0.2126 R + 0.7152 G + 0.0722 B). NotFound, InvalidArgument (not a PNG), DataLoss.
absl::StatusOr<Tensor> ReadPng(const std::string& path, int channels);

}  // namespace thalweg::tools
