// What begin, end, strides and the five masks of StridedSlice-like ops mean for a given input shape.
//
// Pure functions; the same code serves shape inference (where dimensions and indices may be unknown) and kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

// Bit i speaks about element i of begin, end and strides; bits beyond their length are ignored (L24).
struct StridedSliceMasks {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t ellipsis = 0;
  int64_t new_axis = 0;
  int64_t shrink_axis = 0;
};

// An index, or nullopt where it is not known yet.
using KnownIndex = std::optional<int64_t>;

// The slice of one input dimension: `size` elements from `begin` in steps of `stride`.
struct DimSlice {
  int64_t begin = 0;
  int64_t stride = 1;
  int64_t size = kUnknownDim;  // >= 0, a symbol of the input, or unknown
  bool complete = true;        // begin and stride are known
};

struct StridedSlicePlan {
  std::vector<DimSlice> dims;  // one per input dimension
  // The output's dimensions: an input dimension each, or -1 for a new axis. Shrunk dimensions are missing.
  std::vector<int> output_dims;

  // The output's shape; sizes may be unknown.
  Dims OutputDims() const;
};

// InvalidArgument, naming the index and the input shape, if the slice cannot be taken from `input`. Requires: spans of
// equal length.
absl::StatusOr<StridedSlicePlan> PlanStridedSlice(absl::Span<const int64_t> input, absl::Span<const KnownIndex> begin,
                                                  absl::Span<const KnownIndex> end,
                                                  absl::Span<const KnownIndex> strides, const StridedSliceMasks& masks);

// At most this many elements of begin, end and strides: the masks have 32 bits, one of which an implied ellipsis needs.
inline constexpr int kMaxStridedSliceEntries = 31;

}  // namespace thalweg
