// From the attributes and shapes of a convolution node to the problem that the numeric code solves. Pure functions,
// used by kernels, shape functions and cost functions.
#pragma once

#include "absl/status/statusor.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/onednn.h"
#include "thalweg/ops/nn/window.h"

namespace thalweg {

// The filter of kPlain is [spatial..., in / groups, out] with as many groups as fit; kUngrouped allows one group only;
// kDepthwise is [spatial..., in, multiplier].
enum class ConvKind : uint8_t { kPlain, kUngrouped, kDepthwise };

struct ConvGeometry {
  onednn::ConvProblem problem;  // all of its sizes are >= 1 unless `trivial`
  Shape output;                 // in the layout of the node
  bool trivial = false;         // the output is empty or all zeros before anything is added to it
};

// InvalidArgument naming the shape.
absl::Status EmptyFilter(const Shape& filter);

absl::StatusOr<ConvGeometry> FitConvolution(const WindowAttrs& window, ConvKind kind, const Shape& input,
                                            const Shape& filter);

// Shape and cost functions: 2-D convolutions (also their fused forms), 3-D and depthwise ones.
absl::Status Conv2DShape(ShapeContext& c);
absl::Status Conv3DShape(ShapeContext& c);
absl::Status DepthwiseConv2DShape(ShapeContext& c);
NodeCost ConvCost(const CostContext& c);
NodeCost DepthwiseConvCost(const CostContext& c);
// Of both gradients of a convolution, by the shape of its filter: every element of out_backprop (input 2) takes part in as
// many multiply-adds as the filter has elements per output channel.
NodeCost ConvBackpropCost(const CostContext& c, const PartialShape& filter);

}  // namespace thalweg
