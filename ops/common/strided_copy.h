// The one driver behind every op that moves elements without looking at them: slices, concatenations, transpositions,
// tiling, padding, broadcasting, filling.
//
// A copy is an index space: a list of dimensions, each with its extent and the distance that one step covers in source
// and destination. A source stride of 0 repeats, a negative one reverses. The driver drops and merges dimensions, turns
// contiguous runs into memcpy, walks transpositions in cache-sized tiles, and splits large copies over the step's
// threads. It works for every dtype, objects (strings, handles, variants) included.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

struct CopyDim {
  int64_t extent = 0;
  int64_t src_stride = 0;  // in elements
  int64_t dst_stride = 0;  // in elements
};
// Outermost dimension first. An empty list copies one element.
using CopyDims = absl::InlinedVector<CopyDim, 6>;

// Copies every element of the index space from `src`, the address of the element at index 0, to `dst` likewise.
// Requires: a valid dtype, extents >= 0, all addresses inside their buffers, no destination written twice, no overlap
// of source and destination.
void StridedCopy(KernelContext& ctx, DType dtype, CopyDims dims, const void* src, void* dst);

// Writes `count` copies of the element at `value` to `dst`.
void FillElements(KernelContext& ctx, DType dtype, const void* value, int64_t count, void* dst);

// The strides, in elements, of a dense row-major tensor of this shape.
Dims RowMajorStrides(const Shape& shape);

}  // namespace thalweg
