// ReverseV2 and Reverse: the order of elements turned round along some axes, named by number or by a flag each.
#include <optional>

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

absl::StatusOr<std::vector<bool>> ReversedDims(absl::Span<const int64_t> axes, int rank) {
  std::vector<bool> reversed(rank, false);
  for (const int64_t axis : axes) {
    THALWEG_ASSIGN_OR_RETURN(const int i, NormalizeAxis(axis, rank));
    if (reversed[i]) return absl::InvalidArgumentError(absl::StrCat("axis ", i, " is given twice"));
    reversed[i] = true;
  }
  return reversed;
}

// Requires an input with elements.
absl::Status CopyReversed(KernelContext& ctx, const Tensor& in, const std::vector<bool>& reversed) {
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  const Dims strides = RowMajorStrides(in.shape());
  int64_t offset = 0;
  CopyDims dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (reversed[i]) offset += (in.dim(i) - 1) * strides[i];
    dims.push_back({in.dim(i), reversed[i] ? -strides[i] : strides[i], strides[i]});
  }
  StridedCopy(ctx, in.dtype(), std::move(dims), ElementAt(in, offset), out->mutable_raw());
  return absl::OkStatus();
}

class ReverseKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() == 0 || in.num_elements() == 0) {  // whatever the axes say (L21)
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(const Dims axes, IntVectorArg(ctx.input(1), "axis"));
    THALWEG_ASSIGN_OR_RETURN(const std::vector<bool> reversed, ReversedDims(axes, in.rank()));
    if (axes.empty()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    return CopyReversed(ctx, in, reversed);
  }
};

// One flag per dimension.
class ReverseFlagsKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const Tensor& flags = ctx.input(1);
    if (flags.rank() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("dims must be a vector, but its shape is ", flags.shape().ToString()));
    }
    if (in.rank() == 0) {  // whatever the flags say (L21)
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    if (flags.dim(0) != in.rank()) {
      return absl::InvalidArgumentError(
          absl::StrCat("dims must have a flag for each of ", in.rank(), " dimensions, but has ", flags.dim(0)));
    }
    if (in.dim(0) == 0) {  // L22
      return absl::InvalidArgumentError(absl::StrCat("the first dimension must not be 0, but the shape is ", in.shape().ToString()));
    }
    const absl::Span<const bool> values = flags.flat<bool>();
    if (in.num_elements() == 0) return ctx.AllocateOutput(0, in.shape()).status();
    return CopyReversed(ctx, in, std::vector<bool>(values.begin(), values.end()));
  }
};

absl::Status ReverseFlagsShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  return UnchangedShape(c);
}

absl::Status ReverseShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  const PartialShape& in = c.input(0);
  const std::optional<std::vector<int64_t>> axes = c.input_ints(1);
  // Where the kernel takes any axes, for scalars and inputs without elements, this refuses bad ones all the same (L21).
  if (axes && in.has_rank()) {
    THALWEG_RETURN_IF_ERROR(ReversedDims(*axes, in.rank()).status());
  }
  c.set_output(0, in);
  return absl::OkStatus();
}

}  // namespace

void RegisterReverse(OpLibrary& lib) {
  lib.schemas
      .Add("ReverseV2(tensor: T, axis: Tidx) -> output: T",
           "Tidx: {int32, int64} = int32; "
           "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
           "complex64, "
           "complex128, string}")
      .Shape(ReverseShape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("ReverseV2", "cpu", MakeKernel<ReverseKernel>).HostMemory("axis");
  lib.schemas
      .Add("Reverse(tensor: T, dims: bool) -> output: T",
           "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, complex64, "
           "complex128, string}")
      .Shape(ReverseFlagsShape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("Reverse", "cpu", MakeKernel<ReverseFlagsKernel>).HostMemory("dims");
}

}  // namespace thalweg
