// A tensor seen from one of its axes: outer x size x inner elements, row-major.
#pragma once

#include <algorithm>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/shape.h"

namespace thalweg::math {

struct AxisLayout {
  int axis = 0;
  int64_t outer = 1;
  int64_t size = 1;
  int64_t inner = 1;

  int64_t lanes() const { return outer * inner; }
};

// The integer in input `i`, a scalar of type int16, int32 or int64. InvalidArgument for another shape.
inline absl::StatusOr<int64_t> ReadAxis(const KernelContext& ctx, int i) {
  const Tensor& axis = ctx.input(i);
  if (axis.rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the axis must be a scalar, not of shape ", axis.shape().ToString()));
  }
  switch (axis.dtype()) {
    case DType::kInt16: return axis.flat<int16_t>()[0];
    case DType::kInt32: return axis.flat<int32_t>()[0];
    default: return axis.flat<int64_t>()[0];
  }
}

// InvalidArgument if the axis is out of range.
inline absl::StatusOr<AxisLayout> LayoutAt(const Shape& shape, int64_t axis) {
  AxisLayout layout;
  THALWEG_ASSIGN_OR_RETURN(layout.axis, NormalizeAxis(axis, shape.rank()));
  layout.outer = shape.NumElements(0, layout.axis);
  layout.size = shape.dim(layout.axis);
  layout.inner = shape.NumElements(layout.axis + 1, shape.rank());
  return layout;
}

// Calls fn(first_element, first_lane, count) for the lanes [begin, end) in pieces of at most `piece` lanes that are neighbours in memory;
// `first_element` is the offset of the first lane's first element, further ones are `inner` apart.
template <typename Fn>
void ForEachLanePiece(const AxisLayout& layout, int64_t begin, int64_t end, int64_t piece, Fn fn) {
  for (int64_t lane = begin; lane < end;) {
    const int64_t outer = lane / layout.inner, inner = lane % layout.inner;
    const int64_t count = std::min({piece, end - lane, layout.inner - inner});
    fn(outer * layout.size * layout.inner + inner, lane, count);
    lane += count;
  }
}

}  // namespace thalweg::math
