// Slice: a box out of a tensor, by begin and size.
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// Checks one dimension of the box and resolves size -1 (all that is left).
absl::StatusOr<int64_t> SliceSize(int64_t dim, int64_t begin, int64_t size, int axis) {
  if (begin < 0 || begin > dim) {
    return absl::InvalidArgumentError(absl::StrCat("begin[", axis, "] is ", begin, "; it must be in [0,", dim, "]"));
  }
  const int64_t left = dim - begin;
  if (size == -1) return left;
  if (size < 0 || size > left) {
    return absl::InvalidArgumentError(absl::StrCat("size[", axis, "] is ", size, "; from begin ", begin, " of ", dim,
                                                   " it must be in [0,", left, "], or -1 for all"));
  }
  return size;
}

class SliceKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const Dims begin, IntVectorArg(ctx.input(1), "begin"));
    THALWEG_ASSIGN_OR_RETURN(Dims size, IntVectorArg(ctx.input(2), "size"));
    const int rank = in.rank();
    if (static_cast<int>(begin.size()) != rank || static_cast<int>(size.size()) != rank) {
      return absl::InvalidArgumentError(absl::StrCat("begin and size must have one element per dimension of input ",
                                                     in.shape().ToString(), ", but they have ", begin.size(), " and ",
                                                     size.size()));
    }
    const Dims strides = RowMajorStrides(in.shape());
    int64_t offset = 0;
    for (int i = 0; i < rank; ++i) {
      THALWEG_ASSIGN_OR_RETURN(size[i], SliceSize(in.dim(i), begin[i], size[i], i));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(size));
    if (shape == in.shape()) {
      ctx.SetOutput(0, ctx.TakeInput(0));
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const Dims out_strides = RowMajorStrides(shape);
    CopyDims dims;
    for (int i = 0; i < rank; ++i) {
      offset += begin[i] * strides[i];
      dims.push_back({size[i], strides[i], out_strides[i]});
    }
    StridedCopy(ctx, in.dtype(), std::move(dims), ElementAt(in, offset), out->mutable_raw());
    return absl::OkStatus();
  }
};

// One dimension of the result as far as known.
absl::StatusOr<int64_t> InferredSize(int64_t dim, const ElementKnowledge& begin, const ElementKnowledge& size,
                                     int axis) {
  if (IsKnownDim(dim) && begin.value && size.value) {
    absl::StatusOr<int64_t> fits = SliceSize(dim, *begin.value, *size.value, axis);
    // What reaches beyond the end is for the kernel to refuse, as in TensorFlow.
    if (!fits.ok() && *begin.value >= 0 && *size.value >= 0) return kUnknownDim;
    return fits;
  }
  if (size.Is(-1)) return begin.Is(0) ? dim : kUnknownDim;
  if (size.value && *size.value < -1) {
    return absl::InvalidArgumentError(absl::StrCat("size[", axis, "] is ", *size.value, "; it must be >= -1"));
  }
  return size.dim;
}

// A slice of a vector of shape dimensions is one too.
void SliceValue(ShapeContext& c, const ElementKnowledge& begin, int64_t size) {
  const std::optional<Dims> values = KnownDims(c, 0);
  if (!values || !begin.value || !IsKnownDim(size)) return;
  c.set_output_value(0, Dims(values->begin() + *begin.value, values->begin() + *begin.value + size));
}

absl::Status SliceShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(2, 1));
  const PartialShape& in = c.input(0);
  const std::optional<std::vector<ElementKnowledge>> begin = KnownElements(c, 1);
  const std::optional<std::vector<ElementKnowledge>> size = KnownElements(c, 2);
  if (!begin && !size) {
    if (in.has_rank()) c.set_output(0, PartialShape::UnknownOfRank(in.rank()));
    return absl::OkStatus();
  }
  const size_t rank = begin ? begin->size() : size->size();
  if ((begin && size && begin->size() != size->size()) || (in.has_rank() && in.rank() != static_cast<int>(rank))) {
    return absl::InvalidArgumentError(
        absl::StrCat("begin and size must have one element per dimension of input ", in.ToString(), ", but they have ",
                     begin ? absl::StrCat(begin->size()) : "?", " and ", size ? absl::StrCat(size->size()) : "?"));
  }
  const std::vector<ElementKnowledge> begins = begin.value_or(std::vector<ElementKnowledge>(rank));
  const std::vector<ElementKnowledge> sizes = size.value_or(std::vector<ElementKnowledge>(rank));
  Dims dims(rank, kUnknownDim);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = in.has_rank() ? in.dim(static_cast<int>(i)) : kUnknownDim;
    THALWEG_ASSIGN_OR_RETURN(dims[i], InferredSize(dim, begins[i], sizes[i], static_cast<int>(i)));
  }
  if (rank == 1 && in.has_rank() && IsKnownDim(in.dim(0))) SliceValue(c, begins[0], dims[0]);
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterSlice(OpLibrary& lib) {
  lib.schemas.Add("Slice(input: T, begin: Index, size: Index) -> output: T", "T: type; Index: {int32, int64}")
      .Shape(SliceShape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("Slice", "cpu", MakeKernel<SliceKernel>).HostMemory("begin").HostMemory("size");
}

}  // namespace thalweg
