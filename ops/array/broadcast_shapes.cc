// BroadcastArgs, BroadcastGradientArgs, ConcatOffset: arithmetic on shapes that are given as vectors.
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/emit_ints.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

absl::StatusOr<Shape> ReadShape(const KernelContext& ctx, int i) { return ShapeArg(ctx.input(i), i == 0 ? "s0" : "s1"); }

class BroadcastArgsKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape a, ReadShape(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(const Shape b, ReadShape(ctx, 1));
    THALWEG_ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(a, b));
    return EmitInts(ctx, 0, both.dims());
  }
};

// The axes over which the gradients of two broadcast operands are summed.
struct GradientAxes {
  Dims a, b;
};
absl::StatusOr<GradientAxes> FindGradientAxes(const Shape& a, const Shape& b) {
  GradientAxes axes;
  THALWEG_ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(a, b));
  if (a == b) return axes;
  for (int i = 0; i < both.rank(); ++i) {
    const int at_a = i - (both.rank() - a.rank()), at_b = i - (both.rank() - b.rank());
    const int64_t size_a = at_a < 0 ? 1 : a.dim(at_a), size_b = at_b < 0 ? 1 : b.dim(at_b);
    if (size_a == 1) axes.a.push_back(i);
    if (size_b == 1) axes.b.push_back(i);
  }
  return axes;
}

class BroadcastGradientArgsKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape a, ReadShape(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(const Shape b, ReadShape(ctx, 1));
    THALWEG_ASSIGN_OR_RETURN(const GradientAxes axes, FindGradientAxes(a, b));
    THALWEG_RETURN_IF_ERROR(EmitInts(ctx, 0, axes.a));
    return EmitInts(ctx, 1, axes.b);
  }
};

absl::Status BroadcastArgsShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  THALWEG_ASSIGN_OR_RETURN(const PartialShape a, c.input_as_shape(0));
  THALWEG_ASSIGN_OR_RETURN(const PartialShape b, c.input_as_shape(1));
  c.set_output(0, PartialShape::UnknownOfRank(1));
  if (!a.has_rank() || !b.has_rank()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const PartialShape both, ShapeContext::Broadcast(a, b));
  c.set_output(0, PartialShape::OfDims({both.rank()}));
  c.set_output_value(0, Dims(both.dims().begin(), both.dims().end()));
  return absl::OkStatus();
}

absl::Status BroadcastGradientArgsShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  THALWEG_ASSIGN_OR_RETURN(const PartialShape a, c.input_as_shape(0));
  THALWEG_ASSIGN_OR_RETURN(const PartialShape b, c.input_as_shape(1));
  const absl::StatusOr<Shape> known_a = a.ToShape(), known_b = b.ToShape();
  if (!known_a.ok() || !known_b.ok()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const GradientAxes axes, FindGradientAxes(*known_a, *known_b));
  c.set_output(0, PartialShape::OfDims({static_cast<int64_t>(axes.a.size())}));
  c.set_output(1, PartialShape::OfDims({static_cast<int64_t>(axes.b.size())}));
  c.set_output_value(0, axes.a);
  c.set_output_value(1, axes.b);
  return absl::OkStatus();
}

// Where each of several tensors begins along the axis of their concatenation.
class ConcatOffsetKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t wanted, IntScalarArg(ctx.input(0), "concat_dim"));
    THALWEG_ASSIGN_OR_RETURN(const Dims first, IntVectorArg(ctx.input(1), "shape[0]"));
    THALWEG_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(wanted, static_cast<int>(first.size()), "concat_dim"));
    Dims offset(first.size(), 0);
    for (int i = 0; i < ctx.num_outputs(); ++i) {
      const std::string name = absl::StrCat("shape[", i, "]");
      THALWEG_ASSIGN_OR_RETURN(const Dims dims, IntVectorArg(ctx.input(i + 1), name));
      THALWEG_RETURN_IF_ERROR(CheckSameBut(axis, first, dims, i));
      THALWEG_RETURN_IF_ERROR(EmitInts(ctx, i, offset));
      if (!CheckedAdd(offset[axis], dims[axis], &offset[axis])) {
        return absl::InvalidArgumentError(absl::StrCat("the sizes along dimension ", axis, " add up to more than 2^63-1"));
      }
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status CheckSameBut(int axis, const Dims& first, const Dims& dims, int i) {
    bool same = dims.size() == first.size();
    for (size_t d = 0; same && d < dims.size(); ++d) same = static_cast<int>(d) == axis || dims[d] == first[d];
    if (same) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("shapes to be concatenated must agree in all dimensions but ", axis,
                                                   ", but shape[0] is ", PartialShape::OfDims(first).ToString(), " and shape[", i,
                                                   "] is ", PartialShape::OfDims(dims).ToString()));
  }
};

absl::Status ConcatOffsetShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(0));
  PartialShape merged = PartialShape::UnknownOfRank(1);
  for (int i = 1; i < c.num_inputs(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(merged, ShapeContext::Merge(merged, c.input(i)));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, merged);
  return absl::OkStatus();
}

}  // namespace

void RegisterBroadcastShapeOps(OpLibrary& lib) {
  lib.schemas.Add("BroadcastArgs(s0: T, s1: T) -> r0: T", "T: {int32, int64} = int32").Shape(BroadcastArgsShape).Cost(NoCost);
  lib.kernels.Add("BroadcastArgs", "cpu", MakeKernel<BroadcastArgsKernel>).HostMemory("s0").HostMemory("s1").HostMemory("r0");
  lib.schemas.Add("BroadcastGradientArgs(s0: T, s1: T) -> (r0: T, r1: T)", "T: {int32, int64} = int32")
      .Shape(BroadcastGradientArgsShape)
      .Cost(NoCost);
  lib.kernels.Add("BroadcastGradientArgs", "cpu", MakeKernel<BroadcastGradientArgsKernel>)
      .HostMemory("s0")
      .HostMemory("s1")
      .HostMemory("r0")
      .HostMemory("r1");
  lib.schemas
      .Add("ConcatOffset(concat_dim: int32, shape: N*shape_type) -> offset: N*shape_type",
           "N: int >= 2; shape_type: {int32, int64} = int32")
      .Shape(ConcatOffsetShape)
      .Cost(NoCost);
  lib.kernels.Add("ConcatOffset", "cpu", MakeKernel<ConcatOffsetKernel>)
      .HostMemory("concat_dim")
      .HostMemory("shape")
      .HostMemory("offset");
}

}  // namespace thalweg
