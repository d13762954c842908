// Constants of integers that the graph does not hold but that follow from it.
#pragma once

#include <cstdint>
#include <vector>

#include "thalweg/proto/dtype.h"
#include "thalweg/proto/shape.h"
#include "thalweg/proto/tensor_literal.h"

namespace thalweg {

// Null for other types than int32 and int64, and if a value does not fit: that is an error of the step then. One value per
// element.
TensorLiteralPtr IntegerLiteral(DType dtype, const Shape& shape, const std::vector<int64_t>& values);

}  // namespace thalweg
