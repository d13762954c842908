// What is put around a tensor: the argument `paddings` of Pad, MirrorPad and their kin.
#pragma once

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

struct Border {
  int64_t before = 0;
  int64_t after = 0;
};
using Borders = absl::InlinedVector<Border, 5>;

// One border per dimension of `in`. InvalidArgument for another shape of `paddings`, or negative ones.
absl::StatusOr<Borders> ReadBorders(const Tensor& paddings, const Shape& in);
// InvalidArgument if a size overflows.
absl::StatusOr<Shape> PaddedShape(const Shape& in, const Borders& borders);
// Shape function of ops that pad input 0 by input 1.
absl::Status PaddedShapeFn(ShapeContext& c);

}  // namespace thalweg
