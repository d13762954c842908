// A tensor stored alone as a serialized TensorProto.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "thalweg/devices/tensor.h"

namespace thalweg::tools {

// NotFound, InvalidArgument (not a TensorProto, or a value that does not fit its shape).
absl::StatusOr<Tensor> ReadTensorProtoFile(const std::string& path);

}  // namespace thalweg::tools
