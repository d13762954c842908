// GatherNd: elements or slices chosen by whole coordinates.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

absl::Status IndexTooLong(int64_t length, int params_rank) {
  return absl::InvalidArgumentError(
      absl::StrCat("the last dimension of indices is ", length, ", more than the rank ", params_rank, " of params"));
}

// indices.shape[:-1] + params.shape[length:], where length is the last dimension of indices.
template <typename ShapeType>
Dims GatheredDims(const ShapeType& params, const ShapeType& indices, int64_t length) {
  Dims dims(indices.dims().begin(), indices.dims().end() - 1);
  dims.insert(dims.end(), params.dims().begin() + length, params.dims().end());
  return dims;
}

class GatherNdKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    const std::string policy = init.node().node_attrs().GetOr<std::string>("bad_indices_policy", "");
    if (policy != "" && policy != "DEFAULT" && policy != "ERROR" && policy != "IGNORE") {
      return absl::InvalidArgumentError(
          absl::StrCat("bad_indices_policy is '", policy, "'; it must be DEFAULT, ERROR, IGNORE or empty"));
    }
    return std::unique_ptr<Kernel>(new GatherNdKernel(policy == "IGNORE"));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& params = ctx.input(0);
    const Tensor& indices = ctx.input(1);
    if (params.rank() == 0) return absl::InvalidArgumentError("params must have at least rank 1, but it is a scalar");
    if (indices.rank() == 0) return absl::InvalidArgumentError("indices must have at least rank 1, but it is a scalar");
    const int64_t length = indices.dim(indices.rank() - 1);
    if (length > params.rank()) return IndexTooLong(length, params.rank());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(GatheredDims(params.shape(), indices.shape(), length)));
    const int64_t count = indices.shape().NumElements(0, indices.rank() - 1);
    if (count > 0 && params.num_elements() == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(count, " indices into params of shape ", params.shape().ToString(), ", which has no elements"));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (count == 0) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(Tensor offsets, ctx.AllocateTemp(DType::kInt64, Shape::Of({count})));
    THALWEG_RETURN_IF_ERROR(FillOffsets(params.shape(), indices, length, offsets.mutable_flat<int64_t>()));
    BlockGather gather;
    gather.count = count;
    gather.block = params.shape().NumElements(static_cast<int>(length), params.rank());
    gather.offsets = offsets.flat<int64_t>().data();
    THALWEG_RETURN_IF_ERROR(RequireTextOfBlocks(ctx, params.dtype(), gather, params.raw()));
    GatherBlocks(ctx, params.dtype(), gather, params.raw(), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  explicit GatherNdKernel(bool ignore_bad) : ignore_bad_(ignore_bad) {}

  // One offset per coordinate; -1 for a bad one that is to be ignored.
  absl::Status FillOffsets(const Shape& params, const Tensor& indices, int64_t length,
                           absl::Span<int64_t> offsets) const {
    const Dims strides = RowMajorStrides(params);
    return WithIndices(indices, [&](auto values) {
      for (size_t i = 0; i < offsets.size(); ++i) {
        const auto coordinate = values.subspan(i * length, length);
        offsets[i] = OffsetOf(params, strides, coordinate);
        if (offsets[i] >= 0 || ignore_bad_) continue;
        return absl::InvalidArgumentError(absl::StrCat("indices[", i, "] is [", absl::StrJoin(coordinate, ","),
                                                       "], which does not lie in params of shape ", params.ToString()));
      }
      return absl::OkStatus();
    });
  }

  template <typename Index>
  static int64_t OffsetOf(const Shape& params, const Dims& strides, absl::Span<const Index> coordinate) {
    int64_t offset = 0;
    for (size_t d = 0; d < coordinate.size(); ++d) {
      const int64_t index = static_cast<int64_t>(coordinate[d]);
      if (!IndexInRange(index, params.dim(static_cast<int>(d)))) return -1;
      offset += index * strides[d];
    }
    return offset;
  }

  const bool ignore_bad_;
};

absl::Status GatherNdShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(1, 1));
  const PartialShape& params = c.input(0);
  const PartialShape& indices = c.input(1);
  if (!indices.has_rank() || !params.has_rank()) return absl::OkStatus();
  const int64_t length = indices.dim(indices.rank() - 1);
  if (!IsKnownDim(length)) return absl::OkStatus();
  if (length > params.rank()) return IndexTooLong(length, params.rank());
  return SetOutputDims(c, GatheredDims(params, indices, length));
}

}  // namespace

void RegisterGatherNd(OpLibrary& lib) {
  lib.schemas
      .Add("GatherNd(params: Tparams, indices: Tindices) -> output: Tparams",
           "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = \"\"")
      .Shape(GatherNdShape)
      .Cost(MovedBytesCost);
  lib.kernels.Add("GatherNd", "cpu", MakeFallibleKernel<GatherNdKernel>);
}

}  // namespace thalweg
