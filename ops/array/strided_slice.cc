// StridedSlice: slicing with steps, negative indices, new and dropped axes. StridedSliceGrad puts a gradient where the slice
// came from.
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/strided_slice_spec.h"

namespace thalweg {
namespace {

using Indices = absl::InlinedVector<KnownIndex, 4>;

StridedSliceMasks MasksOf(const NodeAttrs& attrs) {
  StridedSliceMasks masks;
  masks.begin = attrs.GetOr<int64_t>("begin_mask", 0);
  masks.end = attrs.GetOr<int64_t>("end_mask", 0);
  masks.ellipsis = attrs.GetOr<int64_t>("ellipsis_mask", 0);
  masks.new_axis = attrs.GetOr<int64_t>("new_axis_mask", 0);
  masks.shrink_axis = attrs.GetOr<int64_t>("shrink_axis_mask", 0);
  return masks;
}

absl::Status WrongLengths(const std::string& begin, const std::string& end, const std::string& strides) {
  return absl::InvalidArgumentError(absl::StrCat("begin, end and strides must be vectors of one length, at most ",
                                                 kMaxStridedSliceEntries, ", but their shapes are ", begin, ", ", end,
                                                 " and ", strides));
}

// The slice that inputs 1 to 3 cut out of a tensor of dimensions `dims`.
absl::StatusOr<StridedSlicePlan> PlanOf(KernelContext& ctx, absl::Span<const int64_t> dims, const StridedSliceMasks& masks) {
  Indices indices[3];
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = ctx.input(i + 1);
    if (t.rank() != 1 || t.num_elements() > kMaxStridedSliceEntries || t.shape() != ctx.input(1).shape()) {
      return WrongLengths(ctx.input(1).shape().ToString(), ctx.input(2).shape().ToString(),
                          ctx.input(3).shape().ToString());
    }
    THALWEG_ASSIGN_OR_RETURN(const Dims values, IntVectorArg(t, "indices"));
    indices[i].assign(values.begin(), values.end());
  }
  return PlanStridedSlice(dims, indices[0], indices[1], indices[2], masks);
}

// The copy between a slice and its dense form: `whole` strides on one side, dense ones on the other. Returns the offset of
// the slice's first element. Requires a slice that is not empty.
int64_t SliceDims(const StridedSlicePlan& plan, const Shape& whole, int64_t elements, bool from_whole, CopyDims* dims) {
  const Dims strides = RowMajorStrides(whole);
  int64_t offset = 0, dense = elements;
  for (int i = 0; i < whole.rank(); ++i) {
    const DimSlice& d = plan.dims[i];
    dense /= d.size;
    offset += d.begin * strides[i];
    // A stride beyond the extent takes one element only; it must not be multiplied.
    const int64_t step = d.size > 1 ? d.stride * strides[i] : 0;
    dims->push_back(from_whole ? CopyDim{d.size, step, dense} : CopyDim{d.size, dense, step});
  }
  return offset;
}

class StridedSliceKernel : public Kernel {
 public:
  explicit StridedSliceKernel(const KernelInit& init) : masks_(MasksOf(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const StridedSlicePlan plan, PlanOf(ctx, in.shape().dims(), masks_));
    THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(plan.OutputDims()));
    if (TakesRows(plan, in.shape())) return PassRows(ctx, plan, std::move(shape));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    CopyDims dims;
    const int64_t offset = SliceDims(plan, in.shape(), shape.num_elements(), true, &dims);
    StridedCopy(ctx, in.dtype(), std::move(dims), ElementAt(in, offset), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  // True if the slice is one contiguous range of rows of dimension 0, which can share the input's buffer.
  static bool TakesRows(const StridedSlicePlan& plan, const Shape& in) {
    if (in.rank() == 0) return true;
    if (in.num_elements() == 0 || plan.dims[0].size == 0 || (plan.dims[0].size > 1 && plan.dims[0].stride != 1)) {
      return false;
    }
    for (int i = 1; i < in.rank(); ++i) {
      if (plan.dims[i].size != in.dim(i) || (in.dim(i) > 1 && plan.dims[i].stride != 1)) return false;
    }
    return true;
  }

  static absl::Status PassRows(KernelContext& ctx, const StridedSlicePlan& plan, Shape shape) {
    const DType dtype = ctx.input_dtype(0);
    Tensor in = ctx.TakeInput(0);
    if (in.rank() > 0 && plan.dims[0].size != in.dim(0)) {
      in = in.Rows(plan.dims[0].begin, plan.dims[0].begin + plan.dims[0].size);
    }
    ctx.SetOutput(0, in.AliasedAs(dtype, std::move(shape)));
    return absl::OkStatus();
  }

  const StridedSliceMasks masks_;
};

// Zeros of a given shape, with the values of an input where a slice would take them from.
class StridedSliceGradKernel : public Kernel {
 public:
  explicit StridedSliceGradKernel(const KernelInit& init) : masks_(MasksOf(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ShapeArg(ctx.input(0), "shape"));
    THALWEG_ASSIGN_OR_RETURN(const StridedSlicePlan plan, PlanOf(ctx, shape.dims(), masks_));
    const Tensor& gradient = ctx.input(4);
    THALWEG_ASSIGN_OR_RETURN(const Shape slice, Shape::Make(plan.OutputDims()));
    if (gradient.shape() != slice) {
      return absl::InvalidArgumentError(absl::StrCat("dy has shape ", gradient.shape().ToString(), ", but the slice of ",
                                                     shape.ToString(), " has shape ", slice.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (IsPlainMemory(out->dtype())) {
      std::memset(out->mutable_raw(), 0, static_cast<size_t>(shape.num_elements()) * DTypeSize(out->dtype()));
    }
    if (slice.num_elements() == 0) return absl::OkStatus();
    CopyDims dims;
    const int64_t offset = SliceDims(plan, shape, slice.num_elements(), false, &dims);
    StridedCopy(ctx, gradient.dtype(), std::move(dims), gradient.raw(), MutableElementAt(*out, offset));
    return absl::OkStatus();
  }

 private:
  const StridedSliceMasks masks_;
};

// Source strides of a value that is broadcast to a slice: `dims` has one entry per dimension of the whole, the value's
// dimensions line up with the slice's from the right.
void SpreadValue(const Shape& value, const StridedSlicePlan& plan, CopyDims* dims) {
  const Dims strides = RowMajorStrides(value);
  const int missing = static_cast<int>(plan.output_dims.size()) - value.rank();
  for (CopyDim& d : *dims) d.src_stride = 0;
  for (size_t o = 0; o < plan.output_dims.size(); ++o) {
    const int at = static_cast<int>(o) - missing;
    if (plan.output_dims[o] >= 0 && at >= 0 && value.dim(at) > 1) (*dims)[plan.output_dims[o]].src_stride = strides[at];
  }
}

// A copy of the input, with other values in a slice of it.
class StridedSliceUpdateKernel : public Kernel {
 public:
  explicit StridedSliceUpdateKernel(const KernelInit& init) : masks_(MasksOf(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(const StridedSlicePlan plan, PlanOf(ctx, shape.dims(), masks_));
    THALWEG_ASSIGN_OR_RETURN(const Shape slice, Shape::Make(plan.OutputDims()));
    const Tensor& value = ctx.input(4);
    absl::StatusOr<Shape> broadcast = BroadcastShapes(value.shape(), slice);
    if (!broadcast.ok() || *broadcast != slice) {
      return absl::InvalidArgumentError(absl::StrCat("value has shape ", value.shape().ToString(),
                                                     ", which does not broadcast to the slice that it replaces, of shape ",
                                                     slice.ToString()));
    }
    const void* before = ctx.input(0).raw();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocateOutput({0}, 0, shape));
    if (out->raw() != before) {
      StridedCopy(ctx, out->dtype(), {{shape.num_elements(), 1, 1}}, before, out->mutable_raw());
    }
    if (slice.num_elements() == 0) return absl::OkStatus();
    CopyDims dims;
    const int64_t offset = SliceDims(plan, shape, slice.num_elements(), false, &dims);
    if (value.shape() != slice) SpreadValue(value.shape(), plan, &dims);
    StridedCopy(ctx, value.dtype(), std::move(dims), value.raw(), MutableElementAt(*out, offset));
    return absl::OkStatus();
  }

 private:
  const StridedSliceMasks masks_;
};

absl::StatusOr<PartialShape> LengthOfIndices(ShapeContext& c) {
  PartialShape length = PartialShape::UnknownOfRank(1);
  for (int i = 1; i <= 3; ++i) {
    absl::StatusOr<PartialShape> merged = ShapeContext::Merge(length, c.input(i));
    if (!merged.ok()) return WrongLengths(c.input(1).ToString(), c.input(2).ToString(), c.input(3).ToString());
    length = *std::move(merged);
  }
  if (length.dim(0) > kMaxStridedSliceEntries) {
    return WrongLengths(length.ToString(), length.ToString(), length.ToString());
  }
  return length;
}

// The indices of input i as far as known; `count` unknown ones if nothing is.
Indices IndicesOf(const ShapeContext& c, int i, int64_t count) {
  Indices indices(count);
  const std::optional<std::vector<ElementKnowledge>> known = KnownElements(c, i);
  if (!known || static_cast<int64_t>(known->size()) != count) return indices;
  for (int64_t k = 0; k < count; ++k) indices[k] = (*known)[k].value;
  return indices;
}

// A slice of a vector of shape dimensions is one too.
void SliceValue(ShapeContext& c, const StridedSlicePlan& plan) {
  const std::optional<Dims> values = KnownDims(c, 0);
  if (!values || plan.dims.size() != 1 || !plan.dims[0].complete || !IsKnownDim(plan.dims[0].size)) return;
  if (plan.output_dims.size() > 1) return;
  Dims out;
  for (int64_t k = 0; k < plan.dims[0].size; ++k) {
    const int64_t position = plan.dims[0].begin + k * plan.dims[0].stride;
    if (position < 0 || position >= static_cast<int64_t>(values->size())) return;
    out.push_back((*values)[position]);
  }
  c.set_output_value(0, std::move(out));
}

absl::Status StridedSliceShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const PartialShape length, LengthOfIndices(c));
  const PartialShape& in = c.input(0);
  const int64_t count = length.dim(0);
  if (!in.has_rank() || !IsKnownDim(count)) return absl::OkStatus();
  const absl::StatusOr<StridedSlicePlan> plan = PlanStridedSlice(
      in.dims(), IndicesOf(c, 1, count), IndicesOf(c, 2, count), IndicesOf(c, 3, count), MasksOf(c.attrs()));
  // Like TensorFlow, judge a slice only once its strides are known; the kernel does it in any case.
  if (!plan.ok() && c.input_literal(3) == nullptr) return absl::OkStatus();
  THALWEG_RETURN_IF_ERROR(plan.status());
  SliceValue(c, *plan);
  return SetOutputDims(c, plan->OutputDims());
}

absl::Status StridedSliceGradShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(LengthOfIndices(c).status());
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status StridedSliceUpdateShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(LengthOfIndices(c).status());
  return UnchangedShape(c);
}

}  // namespace

void RegisterStridedSlice(OpLibrary& lib) {
  lib.schemas
      .Add("StridedSlice(input: T, begin: Index, end: Index, strides: Index) -> output: T",
           "T: type; Index: {int16, int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
           "new_axis_mask: int = 0; shrink_axis_mask: int = 0")
      .Shape(StridedSliceShape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("StridedSlice", "cpu", MakeKernel<StridedSliceKernel>)
      .HostMemory("begin")
      .HostMemory("end")
      .HostMemory("strides");
  lib.schemas
      .Add("StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index, dy: T) -> output: T",
           "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
           "new_axis_mask: int = 0; shrink_axis_mask: int = 0")
      .Shape(StridedSliceGradShape)
      .Cost(CopyCost);
  lib.kernels.Add("StridedSliceGrad", "cpu", MakeKernel<StridedSliceGradKernel>)
      .HostMemory("shape")
      .HostMemory("begin")
      .HostMemory("end")
      .HostMemory("strides");
  lib.schemas
      .Add("TensorStridedSliceUpdate(input: T, begin: Index, end: Index, strides: Index, value: T) -> output: T",
           "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; "
           "new_axis_mask: int = 0; shrink_axis_mask: int = 0")
      .Shape(StridedSliceUpdateShape)
      .Cost(CopyCost);
  lib.kernels.Add("TensorStridedSliceUpdate", "cpu", MakeKernel<StridedSliceUpdateKernel>)
      .HostMemory("begin")
      .HostMemory("end")
      .HostMemory("strides");
}

}  // namespace thalweg
