// Indices that come as tensor data: read, bounds-checked at both ends, turned into element offsets.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "thalweg/devices/tensor.h"

namespace thalweg {

// Calls fn with all elements of an index tensor (int16, int32, int64, int8 or uint8) as a span of their type.
template <typename Fn>
absl::Status WithIndices(const Tensor& indices, Fn&& fn) {
  switch (indices.dtype()) {
    case DType::kInt32: return fn(indices.flat<int32_t>());
    case DType::kInt64: return fn(indices.flat<int64_t>());
    case DType::kInt16: return fn(indices.flat<int16_t>());
    case DType::kInt8: return fn(indices.flat<int8_t>());
    case DType::kUInt8: return fn(indices.flat<uint8_t>());
    default: return absl::InvalidArgumentError("indices must be integers, not " + DTypeName(indices.dtype()));
  }
}

inline bool IndexInRange(int64_t index, int64_t limit) {
  return static_cast<uint64_t>(index) < static_cast<uint64_t>(limit);
}

// "[1,0]": the coordinates of element `flat` in a tensor of this shape.
std::string CoordinateString(const Shape& shape, int64_t flat);

}  // namespace thalweg
