// Element-by-element updates of stored values: what assignments, scatters and gradient sums do with old and new.
//
// Integers wrap around; half and bfloat16 compute in float and round once. All functions are pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/dtype.h"

namespace thalweg {

enum class CombineOp : uint8_t { kAdd, kSub, kMul, kDiv, kMin, kMax };

// out[i] = a[i] op b[i * b_stride] for n elements; b_stride is 0 (one value for all) or 1. `out` may be `a` or apart from it.
// InvalidArgument if an integer is divided by zero (L16); `out` is then partly written.
using CombineLoop = absl::Status (*)(const void* a, const void* b, int64_t b_stride, void* out, int64_t n);

// Null if the op does not exist for the type: bool, strings and handles have none, complex numbers no minimum and maximum.
CombineLoop FindCombineLoop(CombineOp op, DType dtype);

// The sum of two tensors in host memory, of one dtype and shape, in a new buffer there. InvalidArgument if the type has no addition.
absl::StatusOr<Tensor> SumOfTensors(KernelContext& ctx, const Tensor& a, const Tensor& b);

// All plain number types that TensorFlow updates in place (not bool, not quantized).
absl::Span<const DType> CombinableTypes();

}  // namespace thalweg
