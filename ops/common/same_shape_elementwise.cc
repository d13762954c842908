#include "thalweg/ops/common/same_shape_elementwise.h"

#include "absl/strings/str_cat.h"

namespace thalweg {

absl::Status SameShapeElementwiseKernel::Compute(KernelContext& ctx) {
  const Shape shape = ctx.input(0).shape();
  const Shape& other = ctx.input(1).shape();
  if (rule_ == OperandRule::kSameShape ? shape != other : shape.num_elements() != other.num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat("both operands must have ",
                                                   rule_ == OperandRule::kSameShape ? "one shape" : "equally many elements",
                                                   ", but their shapes are ", shape.ToString(), " and ", other.ToString()));
  }
  return elementwise_.ComputeAs(ctx, {&shape, &shape});
}

}  // namespace thalweg
