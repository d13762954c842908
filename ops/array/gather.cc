// Gather and GatherV2: slices of a tensor along one axis, chosen by index.
#include <optional>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

// Axis and batch_dims, normalised and checked against the ranks.
struct GatherAxes {
  int axis = 0;
  int batch = 0;
};

absl::StatusOr<GatherAxes> ResolveAxes(int64_t axis, int64_t batch_dims, int params_rank, int indices_rank) {
  if (params_rank == 0) return absl::InvalidArgumentError("params must have at least rank 1, but it is a scalar");
  GatherAxes axes;
  THALWEG_ASSIGN_OR_RETURN(axes.axis, NormalizeAxis(axis, params_rank));
  if (batch_dims < -static_cast<int64_t>(indices_rank) || batch_dims > indices_rank) {
    return absl::InvalidArgumentError(absl::StrCat("batch_dims is ", batch_dims, "; for indices of rank ", indices_rank,
                                                   " it must be in [", -indices_rank, ",", indices_rank, "]"));
  }
  axes.batch = static_cast<int>(batch_dims < 0 ? batch_dims + indices_rank : batch_dims);
  return axes;
}

absl::Status BatchDimDiffers(int i, int64_t params, int64_t indices) {
  return absl::InvalidArgumentError(
      absl::StrCat("batch dimension ", i, " of params is ", params, ", but that of indices is ", indices));
}

// params[:axis] + indices[batch:] + params[axis+1:]
template <typename ShapeType>
Dims GatheredDims(const ShapeType& params, const ShapeType& indices, const GatherAxes& axes) {
  Dims dims(params.dims().begin(), params.dims().begin() + axes.axis);
  dims.insert(dims.end(), indices.dims().begin() + axes.batch, indices.dims().end());
  dims.insert(dims.end(), params.dims().begin() + axes.axis + 1, params.dims().end());
  return dims;
}

// Writes index * stride for every index. InvalidArgument naming the first one out of range.
absl::Status FillOffsets(const Tensor& indices, int64_t limit, int64_t stride, int64_t* offsets) {
  return WithIndices(indices, [&](auto values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t index = static_cast<int64_t>(values[i]);
      if (!IndexInRange(index, limit)) {
        return absl::InvalidArgumentError(absl::StrCat("indices",
                                                       CoordinateString(indices.shape(), static_cast<int64_t>(i)),
                                                       " is ", index, "; it must be in [0,", limit, ")"));
      }
      offsets[i] = index * stride;
    }
    return absl::OkStatus();
  });
}

class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const KernelInit& init)
      : batch_dims_(init.node().node_attrs().GetOr<int64_t>("batch_dims", 0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& params = ctx.input(0);
    const Tensor& indices = ctx.input(1);
    int64_t axis = 0;
    if (ctx.num_inputs() > 2) {
      THALWEG_ASSIGN_OR_RETURN(axis, IntScalarArg(ctx.input(2), "axis"));
    }
    THALWEG_ASSIGN_OR_RETURN(const GatherAxes axes, ResolveAxes(axis, batch_dims_, params.rank(), indices.rank()));
    if (axes.batch > axes.axis) {
      return absl::InvalidArgumentError(absl::StrCat("batch_dims ", axes.batch, " must not exceed axis ", axes.axis));
    }
    for (int i = 0; i < axes.batch; ++i) {
      if (params.dim(i) != indices.dim(i)) return BatchDimDiffers(i, params.dim(i), indices.dim(i));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(GatheredDims(params.shape(), indices.shape(), axes)));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();  // indices do not matter then

    BlockGather gather;
    gather.batch = params.shape().NumElements(0, axes.batch);
    gather.outer = params.shape().NumElements(axes.batch, axes.axis);
    gather.count = indices.shape().NumElements(axes.batch, indices.rank());
    gather.block = params.shape().NumElements(axes.axis + 1, params.rank());
    gather.group = params.dim(axes.axis) * gather.block;
    int64_t only_offset = 0;
    int64_t* offsets = &only_offset;
    Tensor many_offsets;
    if (indices.num_elements() > 1) {
      THALWEG_ASSIGN_OR_RETURN(many_offsets, ctx.AllocateTemp(DType::kInt64, indices.shape()));
      offsets = many_offsets.mutable_flat<int64_t>().data();
    }
    THALWEG_RETURN_IF_ERROR(FillOffsets(indices, params.dim(axes.axis), gather.block, offsets));
    gather.offsets = offsets;
    THALWEG_RETURN_IF_ERROR(RequireTextOfBlocks(ctx, params.dtype(), gather, params.raw()));
    GatherBlocks(ctx, params.dtype(), gather, params.raw(), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  const int64_t batch_dims_;
};

// A constant index into a vector of shape dimensions picks dimensions.
void GatherValue(ShapeContext& c) {
  const std::optional<Dims> values = KnownDims(c, 0);
  const std::optional<std::vector<int64_t>> indices = c.input_ints(1);
  if (!values || !indices || !c.input(0).has_rank() || c.input(0).rank() != 1 || c.input(1).rank() > 1) return;
  Dims out;
  for (const int64_t i : *indices) {
    if (!IndexInRange(i, static_cast<int64_t>(values->size()))) return;
    out.push_back((*values)[i]);
  }
  if (out.size() <= kMaxRank) c.set_output_value(0, std::move(out));
}

absl::Status GatherShapeOf(ShapeContext& c, std::optional<int64_t> axis, int64_t batch_dims) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  if (!params.has_rank() || !indices.has_rank()) return absl::OkStatus();
  if (!axis) {
    const int64_t batch = batch_dims < 0 ? batch_dims + indices.rank() : batch_dims;
    const int64_t rank = params.rank() - 1 + indices.rank() - batch;
    if (batch >= 0 && rank >= 0 && rank <= kMaxRank) {
      c.set_output(0, PartialShape::UnknownOfRank(static_cast<int>(rank)));
    }
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(const GatherAxes axes, ResolveAxes(*axis, batch_dims, params.rank(), indices.rank()));
  if (axes.batch > axes.axis) return absl::OkStatus();  // refused when it runs
  PartialShape merged = params;
  for (int i = 0; i < axes.batch; ++i) {
    const absl::StatusOr<int64_t> dim = ShapeContext::MergeDim(params.dim(i), indices.dim(i));
    if (dim.ok()) merged.set_dim(i, *dim);  // else the kernel refuses it
  }
  GatherValue(c);
  return SetOutputDims(c, GatheredDims(merged, indices, axes));
}

absl::Status GatherV2Shape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(2));
  return GatherShapeOf(c, c.input_int(2), c.attrs().GetOr<int64_t>("batch_dims", 0));
}
absl::Status GatherV1Shape(ShapeContext& c) { return GatherShapeOf(c, 0, 0); }

}  // namespace

void RegisterGatherOps(OpLibrary& lib) {
  lib.schemas
      .Add("Gather(params: Tparams, indices: Tindices) -> output: Tparams",
           "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}")
      .Shape(GatherV1Shape)
      .Cost(MovedBytesCost);
  lib.schemas
      .Add("GatherV2(params: Tparams, indices: Tindices, axis: Taxis) -> output: Tparams",
           "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: {int32, int64}")
      .Shape(GatherV2Shape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("Gather", "cpu", MakeKernel<GatherKernel>);
  lib.kernels.Add("GatherV2", "cpu", MakeKernel<GatherKernel>).HostMemory("axis");
}

}  // namespace thalweg
