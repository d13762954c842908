// Roll: elements shifted along axes, those that leave at one end coming back at the other.
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// How far each dimension of `shape` is shifted, in [0, size). Shifts along one axis add up.
absl::StatusOr<Dims> ShiftPerDim(const Shape& shape, const Dims& shifts, const Dims& axes) {
  Dims shift(shape.rank(), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(const int d, NormalizeAxis(axes[i], shape.rank()));
    const int64_t size = shape.dim(d);
    if (size == 0) continue;
    int64_t by = static_cast<int32_t>(shifts[i]) % size;  // TensorFlow keeps 32 bits
    if (by < 0) by += size;
    shift[d] = by < size - shift[d] ? shift[d] + by : shift[d] - (size - by);
  }
  return shift;
}

class RollKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() == 0) return absl::InvalidArgumentError("input must have at least rank 1, but it is a scalar");
    for (int i = 1; i <= 2; ++i) {
      if (ctx.input(i).rank() <= 1) continue;
      return absl::InvalidArgumentError(absl::StrCat(i == 1 ? "shift" : "axis", " must be a scalar or a vector, but its shape is ",
                                                     ctx.input(i).shape().ToString()));
    }
    if (ctx.input(1).shape() != ctx.input(2).shape()) {
      return absl::InvalidArgumentError(absl::StrCat("shift and axis must have one shape, but have ", ctx.input(1).shape().ToString(),
                                                     " and ", ctx.input(2).shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Dims shifts, IntElementsArg(ctx.input(1), "shift"));
    THALWEG_ASSIGN_OR_RETURN(const Dims axes, IntElementsArg(ctx.input(2), "axis"));
    THALWEG_ASSIGN_OR_RETURN(const Dims shift, ShiftPerDim(in.shape(), shifts, axes));
    if (in.num_elements() == 0) return ctx.AllocateOutput(0, in.shape()).status();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    CopyBoxes(ctx, in, shift, out);
    return absl::OkStatus();
  }

 private:
  // A shifted dimension falls into two pieces, so a tensor falls into boxes: at most as many as it has elements.
  static void CopyBoxes(KernelContext& ctx, const Tensor& in, const Dims& shift, Tensor* out) {
    const Dims strides = RowMajorStrides(in.shape());
    std::vector<int> shifted;
    for (int d = 0; d < in.rank(); ++d) {
      if (shift[d] != 0) shifted.push_back(d);
    }
    const int64_t boxes = int64_t{1} << shifted.size();
    for (int64_t box = 0; box < boxes; ++box) {
      CopyDims dims;
      for (int d = 0; d < in.rank(); ++d) dims.push_back({in.dim(d), strides[d], strides[d]});
      int64_t from = 0, to = 0;
      for (size_t i = 0; i < shifted.size(); ++i) {
        const int d = shifted[i];
        const bool wraps = (box >> i & 1) != 0;
        dims[d].extent = wraps ? shift[d] : in.dim(d) - shift[d];
        from += wraps ? (in.dim(d) - shift[d]) * strides[d] : 0;
        to += wraps ? 0 : shift[d] * strides[d];
      }
      StridedCopy(ctx, in.dtype(), std::move(dims), ElementAt(in, from), MutableElementAt(*out, to));
    }
  }
};

absl::Status RollShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(1, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(2, 1));
  THALWEG_RETURN_IF_ERROR(ShapeContext::Merge(c.input(1), c.input(2)).status());
  return UnchangedShape(c);
}

}  // namespace

void RegisterRoll(OpLibrary& lib) {
  lib.schemas
      .Add("Roll(input: T, shift: Tshift, axis: Taxis) -> output: T", "T: type; Tshift: {int32, int64}; Taxis: {int32, int64}")
      .Shape(RollShape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("Roll", "cpu", MakeKernel<RollKernel>).HostMemory("shift").HostMemory("axis");
}

}  // namespace thalweg
