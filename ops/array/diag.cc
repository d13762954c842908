// Diag and DiagPart: a tensor on the diagonal of one of twice its rank, and back.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

class DiagKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() == 0) return absl::InvalidArgumentError("diagonal must have at least rank 1, but it is a scalar");
    Dims dims(in.shape().dims().begin(), in.shape().dims().end());
    dims.insert(dims.end(), in.shape().dims().begin(), in.shape().dims().end());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    std::memset(out->mutable_raw(), 0, static_cast<size_t>(shape.num_elements()) * DTypeSize(out->dtype()));
    StridedCopy(ctx, in.dtype(), {{in.num_elements(), 1, in.num_elements() + 1}}, in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }
};

absl::Status NoSquare(const std::string& shape) {
  return absl::InvalidArgumentError(
      absl::StrCat("input must have an even rank and equal halves of dimensions, but its shape is ", shape));
}

class DiagPartKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const absl::Span<const int64_t> dims = in.shape().dims();  // none is its own diagonal
    const size_t half = dims.size() / 2;
    if (dims.size() % 2 != 0 || dims.first(half) != dims.last(half)) return NoSquare(in.shape().ToString());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims.first(half)));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    StridedCopy(ctx, in.dtype(), {{shape.num_elements(), shape.num_elements() + 1, 1}}, in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }
};

absl::Status DiagShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  const PartialShape& in = c.input(0);
  if (!in.has_rank() || 2 * in.rank() > kMaxRank) return absl::OkStatus();
  Dims dims(in.dims().begin(), in.dims().end());
  dims.insert(dims.end(), in.dims().begin(), in.dims().end());
  return SetOutputDims(c, std::move(dims));
}

absl::Status DiagPartShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() % 2 != 0) return NoSquare(in.ToString());
  Dims dims;
  for (int i = 0; i < in.rank() / 2; ++i) {
    const absl::StatusOr<int64_t> dim = ShapeContext::MergeDim(in.dim(i), in.dim(i + in.rank() / 2));
    if (!dim.ok()) return NoSquare(in.ToString());
    dims.push_back(*dim);
  }
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterDiagOps(OpLibrary& lib) {
  constexpr char kTypes[] = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}";
  lib.schemas.Add("Diag(diagonal: T) -> output: T", kTypes).Shape(DiagShape).Cost(WrittenBytesCost);
  lib.schemas.Add("DiagPart(input: T) -> diagonal: T", kTypes).Shape(DiagPartShape).Cost(MovedBytesCost);
  lib.kernels.Add("Diag", "cpu", MakeKernel<DiagKernel>)
      .Type<float, double, half, int32_t, int64_t, std::complex<float>, std::complex<double>>("T");
  lib.kernels.Add("DiagPart", "cpu", MakeKernel<DiagPartKernel>)
      .Type<float, double, half, int32_t, int64_t, std::complex<float>, std::complex<double>>("T");
}

}  // namespace thalweg
