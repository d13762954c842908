// Many tensors as rows of one, and back: what TensorArrays, tensor lists and queues gather, stack, split and concatenate.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

// `first` before the dimensions of `rest`. InvalidArgument if the result is no shape (sizes overflow, rank too high).
absl::StatusOr<Shape> WithLeadingDim(int64_t first, const Shape& rest);
// Everything but dimension 0. Requires rank >= 1.
Shape WithoutLeadingDim(const Shape& shape);

// Rows [begin, end) of `value` under `shape`, which must have as many elements; shares the buffer.
Tensor RowsAs(const Tensor& value, int64_t begin, int64_t end, Shape shape);

// Copies the elements of part i to element offsets[i] of `out` and those after it. Requires that they have the dtype of `out`
// and a place in it.
void CopyToOffsets(KernelContext& ctx, absl::Span<const Tensor> parts, absl::Span<const int64_t> offsets, Tensor* out);
// The same, one part after the other: copies the elements of all parts into `out`, which must have as many as they have together.
void CopyConsecutively(KernelContext& ctx, absl::Span<const Tensor> parts, Tensor* out);

// Sets every element to zero; strings to empty ones, handles to null.
void ClearElements(Tensor* tensor);
// A tensor of `shape` with every byte zero, strings empty, handles null, in host memory.
absl::StatusOr<Tensor> ZeroTensor(KernelContext& ctx, DType dtype, const Shape& shape);

}  // namespace thalweg
