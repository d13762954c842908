// StridedSliceAssign and ResourceStridedSliceAssign: a slice of a variable replaced.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/dtype_sets.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/strided_slice_spec.h"
#include "thalweg/ops/common/variable.h"
#include "thalweg/ops/state/state_ops.h"

namespace thalweg {
namespace {

StridedSliceMasks MasksOf(const NodeAttrs& attrs) {
  StridedSliceMasks masks;
  masks.begin = attrs.GetOr<int64_t>("begin_mask", 0);
  masks.end = attrs.GetOr<int64_t>("end_mask", 0);
  masks.ellipsis = attrs.GetOr<int64_t>("ellipsis_mask", 0);
  masks.new_axis = attrs.GetOr<int64_t>("new_axis_mask", 0);
  masks.shrink_axis = attrs.GetOr<int64_t>("shrink_axis_mask", 0);
  return masks;
}

// True if a value of this shape can be broadcast to the slice. It may have more dimensions in front, of one element each.
bool FitsSlice(const Shape& value, const Shape& slice) {
  for (int i = 0; i < value.rank(); ++i) {
    const int from_end = value.rank() - i;
    const bool fits = value.dim(i) == 1 || (from_end <= slice.rank() && value.dim(i) == slice.dim(slice.rank() - from_end));
    if (!fits) return false;
  }
  return true;
}

// By how many elements of `value` one step along each dimension of the variable goes. The value is broadcast to the slice, so
// it is 0 where it has one element for all, and where the slice has one index only.
Dims ValueStrides(const StridedSlicePlan& plan, const Tensor& value) {
  const Dims strides = RowMajorStrides(value.shape());
  Dims out(plan.dims.size(), 0);
  const int missing = static_cast<int>(plan.output_dims.size()) - value.rank();
  for (int k = std::max(missing, 0); k < static_cast<int>(plan.output_dims.size()); ++k) {
    const int dim = plan.output_dims[k];
    if (dim >= 0 && value.dim(k - missing) > 1) out[dim] = strides[k - missing];
  }
  return out;
}

// Writes the value to the places of `variable` that the plan names. On one thread, since the variable is locked. Requires
// that the slice is not empty and that the value can be broadcast to it.
void WriteSlice(const StridedSlicePlan& plan, const Tensor& value, Tensor& variable) {
  const absl::Span<const DimSlice> slices = plan.dims;
  const Dims strides = RowMajorStrides(variable.shape());
  const Dims value_strides = ValueStrides(plan, value);
  const int rank = variable.rank();
  int64_t to = 0;
  for (int i = 0; i < rank; ++i) to += slices[i].begin * strides[i];
  WithCell(variable.dtype(), [&, to, from = int64_t{0}](auto cell) mutable {
    using Cell = decltype(cell);
    Dims index(rank, 0);
    for (;;) {
      Cell::Copy(static_cast<char*>(variable.mutable_raw()) + to * Cell::kBytes,
                 static_cast<const char*>(value.raw()) + from * Cell::kBytes);
      int d = rank - 1;
      for (; d >= 0 && index[d] + 1 == slices[d].size; --d) {
        to -= index[d] * slices[d].stride * strides[d];
        from -= index[d] * value_strides[d];
        index[d] = 0;
      }
      if (d < 0) return;
      ++index[d];
      to += slices[d].stride * strides[d];
      from += value_strides[d];
    }
  });
}

class StridedSliceAssignKernel : public Kernel {
 public:
  explicit StridedSliceAssignKernel(const KernelInit& init) : masks_(MasksOf(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
    VariableStorage& storage = *variable.storage;
    THALWEG_RETURN_IF_ERROR(CheckVariableDType(storage, ctx.input_dtype(4)));
    {
      std::lock_guard<std::mutex> lock(storage.mutex);
      if (!storage.tensor.initialized()) return HasNoValue(storage);
      THALWEG_ASSIGN_OR_RETURN(const StridedSlicePlan plan, Plan(ctx, storage.tensor.shape()));
      const Tensor& value = ctx.input(4);
      THALWEG_ASSIGN_OR_RETURN(const Shape slice, Shape::Make(plan.OutputDims()));
      if (!FitsSlice(value.shape(), slice)) {
        return absl::InvalidArgumentError(absl::StrCat("the slice of variable '", storage.name, "' has shape ", slice.ToString(),
                                                       ", the value for it ", value.shape().ToString()));
      }
      THALWEG_ASSIGN_OR_RETURN(Tensor * target, WritableValue(ctx, variable));
      if (slice.num_elements() > 0) WriteSlice(plan, value, *target);
    }
    PassReference(ctx, 0);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<StridedSlicePlan> Plan(KernelContext& ctx, const Shape& variable) const {
    std::vector<KnownIndex> indices[3];
    for (int i = 0; i < 3; ++i) {
      const Tensor& t = ctx.input(i + 1);
      if (t.shape() != ctx.input(1).shape()) {
        return absl::InvalidArgumentError(absl::StrCat("begin, end and strides must be vectors of one length, not of shapes ",
                                                       ctx.input(1).shape().ToString(), ", ", ctx.input(2).shape().ToString(),
                                                       " and ", ctx.input(3).shape().ToString()));
      }
      THALWEG_ASSIGN_OR_RETURN(const Dims values, IntVectorArg(t, "begin, end or strides", kMaxStridedSliceEntries));
      indices[i].assign(values.begin(), values.end());
    }
    return PlanStridedSlice(variable.dims(), indices[0], indices[1], indices[2], masks_);
  }

  const StridedSliceMasks masks_;
};

absl::Status PassVariableShape(ShapeContext& c) {
  if (c.num_outputs() > 0) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

}  // namespace

void RegisterStridedSliceAssign(OpLibrary& lib) {
  const char* const attrs =
      "T: type; Index: {int32, int64}; begin_mask: int = 0; end_mask: int = 0; ellipsis_mask: int = 0; new_axis_mask: int = 0; "
      "shrink_axis_mask: int = 0";
  const std::vector<DType> types = PlainTypesAnd({DType::kString, DType::kQInt8, DType::kQUInt8, DType::kQInt32, DType::kResource,
                                                  DType::kVariant, DType::kFloat8E4M3FN, DType::kFloat8E5M2});
  lib.schemas.Add("StridedSliceAssign(ref: Ref(T), begin: Index, end: Index, strides: Index, value: T) -> output_ref: Ref(T)", attrs)
      .Shape(PassVariableShape)
      .Cost(MovedBytesCost);
  lib.schemas.Add("ResourceStridedSliceAssign(ref: resource, begin: Index, end: Index, strides: Index, value: T)", attrs)
      .Shape(PassVariableShape)
      .Cost(MovedBytesCost)
      .Stateful();
  lib.kernels.Add("StridedSliceAssign", "cpu", MakeKernel<StridedSliceAssignKernel>).Type("T", types);
  lib.kernels.Add("ResourceStridedSliceAssign", "cpu", MakeKernel<StridedSliceAssignKernel>).Type("T", types);
}

}  // namespace thalweg
