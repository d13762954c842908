// ResourceGather and ResourceGatherNd: blocks of a variable's value, without a copy of the whole.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/dtype_sets.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/variable.h"
#include "thalweg/ops/state/nd_offsets.h"
#include "thalweg/ops/state/state_ops.h"

namespace thalweg {
namespace {

absl::StatusOr<Tensor> ReadVariable(KernelContext& ctx) {
  THALWEG_ASSIGN_OR_RETURN(const VariableInput variable, FindVariableInput(ctx, 0));
  THALWEG_RETURN_IF_ERROR(CheckVariableDType(*variable.storage, ctx.output_dtype(0)));
  return variable.keep_alive->Read();
}

// Allocates the output, finds the offsets (which there may be far more of than memory holds, if the output is too large), and
// copies.
template <typename FindOffsets>
absl::Status EmitBlocks(KernelContext& ctx, const Tensor& value, BlockGather gather, const Dims& dims, FindOffsets find) {
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  std::vector<int64_t> offsets;
  THALWEG_RETURN_IF_ERROR(find(&offsets));
  gather.offsets = offsets.data();
  if (shape.num_elements() > 0) GatherBlocks(ctx, value.dtype(), gather, value.raw(), out->mutable_raw());
  return absl::OkStatus();
}

class GatherKernel : public Kernel {
 public:
  explicit GatherKernel(const KernelInit& init)
      : batch_dims_(init.node().node_attrs().GetOr<int64_t>("batch_dims", 0)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(ctx));
    const Tensor& indices = ctx.input(1);
    THALWEG_ASSIGN_OR_RETURN(const int batch_dims, BatchDims(value, indices));
    const Shape& from = value.shape();
    BlockGather gather;
    gather.batch = from.NumElements(0, batch_dims);
    gather.count = indices.shape().NumElements(batch_dims, indices.rank());
    gather.block = from.NumElements(batch_dims + 1, from.rank());
    gather.group = from.dim(batch_dims) * gather.block;
    Dims dims(from.dims().begin(), from.dims().begin() + batch_dims);
    dims.insert(dims.end(), indices.shape().dims().begin() + batch_dims, indices.shape().dims().end());
    dims.insert(dims.end(), from.dims().begin() + batch_dims + 1, from.dims().end());
    return EmitBlocks(ctx, value, gather, dims, [&](std::vector<int64_t>* offsets) {
      return FindOffsets(indices, from.dim(batch_dims), gather.block, offsets);
    });
  }

 private:
  absl::StatusOr<int> BatchDims(const Tensor& value, const Tensor& indices) const {
    const int64_t batch_dims = batch_dims_ < 0 ? batch_dims_ + indices.rank() : batch_dims_;
    bool fits = batch_dims >= 0 && batch_dims <= indices.rank() && batch_dims < value.rank();
    for (int i = 0; fits && i < batch_dims; ++i) fits = value.dim(i) == indices.dim(i);
    if (fits) return static_cast<int>(batch_dims);
    return absl::InvalidArgumentError(absl::StrCat("a variable of shape ", value.shape().ToString(), " cannot be gathered from by ",
                                                   "indices of shape ", indices.shape().ToString(), " with batch_dims ",
                                                   batch_dims_));
  }

  static absl::Status FindOffsets(const Tensor& indices, int64_t limit, int64_t block, std::vector<int64_t>* offsets) {
    return WithIndices(indices, [&](auto index) -> absl::Status {
      offsets->resize(index.size());
      for (size_t i = 0; i < index.size(); ++i) {
        if (!IndexInRange(index[i], limit)) {
          return absl::InvalidArgumentError(absl::StrCat("indices", CoordinateString(indices.shape(), static_cast<int64_t>(i)),
                                                         " = ", index[i], " is not in [0, ", limit, ")"));
        }
        (*offsets)[i] = index[i] * block;
      }
      return absl::OkStatus();
    });
  }

  const int64_t batch_dims_;
};

class GatherNdKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(ctx));
    const Tensor& indices = ctx.input(1);
    const int rank = indices.rank();
    const int64_t depth = rank > 0 ? indices.dim(rank - 1) : -1;
    if (depth < 0 || depth > value.rank()) {
      return absl::InvalidArgumentError(absl::StrCat("indices of shape ", indices.shape().ToString(),
                                                     " do not name places in a variable of shape ", value.shape().ToString()));
    }
    BlockGather gather;
    gather.count = indices.shape().NumElements(0, rank - 1);
    gather.block = value.shape().NumElements(static_cast<int>(depth), value.rank());
    Dims dims(indices.shape().dims().begin(), indices.shape().dims().end() - 1);
    dims.insert(dims.end(), value.shape().dims().begin() + depth, value.shape().dims().end());
    return EmitBlocks(ctx, value, gather, dims, [&](std::vector<int64_t>* offsets) {
      return NdOffsets(indices, gather.count, static_cast<int>(depth), value.shape(), offsets);
    });
  }
};

absl::Status GatherNdShape(ShapeContext& c) { return c.RequireRankAtLeast(1, 1); }

}  // namespace

void RegisterResourceGatherOps(OpLibrary& lib) {
  lib.schemas
      .Add("ResourceGather(resource: resource, indices: Tindices) -> output: dtype",
           "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: {int32, int64}")
      .Shape(UnknownShape)
      .Cost(MovedBytesCost)
      .Stateful();
  lib.schemas
      .Add("ResourceGatherNd(resource: resource, indices: Tindices) -> output: dtype", "dtype: type; Tindices: {int32, int64}")
      .Shape(GatherNdShape)
      .Cost(MovedBytesCost)
      .Stateful();
  lib.kernels.Add("ResourceGather", "cpu", MakeKernel<GatherKernel>)
      .Type("dtype", PlainTypesAnd({DType::kString, DType::kQInt8, DType::kQUInt8, DType::kQInt32, DType::kResource, DType::kVariant}));
  lib.kernels.Add("ResourceGatherNd", "cpu", MakeKernel<GatherNdKernel>).Type("dtype", MovableTypes());
}

}  // namespace thalweg
