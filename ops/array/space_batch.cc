// SpaceToBatchND, BatchToSpaceND and their two-dimensional forerunners: blocks of positions traded for batch entries.
//
// Position p of a padded (or, the other way, to be cropped) dimension lies in cell p / block at place p % block. The batch
// has one part for each combination of places, in row-major order; a part is one strided copy.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

// One blocked dimension: block size, and what is padded before and after its positions.
struct BlockDim {
  int64_t block = 1;
  int64_t before = 0;
  int64_t after = 0;
};
using BlockDims = absl::InlinedVector<BlockDim, 4>;

absl::StatusOr<BlockDims> MakeBlockDims(absl::Span<const int64_t> blocks, absl::Span<const int64_t> borders, int rank) {
  if (borders.size() != 2 * blocks.size() || static_cast<int>(blocks.size()) >= rank) {
    return absl::InvalidArgumentError(absl::StrCat("block_shape of ", blocks.size(), " elements and ", borders.size(),
                                                   " paddings or crops do not fit an input of rank ", rank));
  }
  BlockDims dims;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const BlockDim d{blocks[i], borders[2 * i], borders[2 * i + 1]};
    if (d.block < 1 || d.before < 0 || d.after < 0) {
      return absl::InvalidArgumentError(absl::StrCat("blocked dimension ", i, " has block size ", d.block, " and border [", d.before,
                                                     ",", d.after, "]; blocks must be positive, borders not negative"));
    }
    dims.push_back(d);
  }
  return dims;
}

absl::StatusOr<int64_t> BlockProduct(const BlockDims& blocks) {
  int64_t product = 1;
  for (const BlockDim& d : blocks) {
    if (!CheckedMul(product, d.block, &product)) return absl::InvalidArgumentError("the product of block sizes overflows");
  }
  return product;
}

// The batch side for a space side of these dimensions; dimensions may be unknown.
absl::StatusOr<Dims> BatchSide(Dims dims, const BlockDims& blocks) {
  THALWEG_ASSIGN_OR_RETURN(const int64_t product, BlockProduct(blocks));
  THALWEG_ASSIGN_OR_RETURN(dims[0], ShapeContext::MulDims(dims[0], product));
  for (size_t i = 0; i < blocks.size(); ++i) {
    int64_t border;
    if (!CheckedAdd(blocks[i].before, blocks[i].after, &border)) return absl::InvalidArgumentError("paddings overflow");
    THALWEG_ASSIGN_OR_RETURN(const int64_t padded, ShapeContext::AddDims(dims[i + 1], border));
    if (IsKnownDim(padded) && padded % blocks[i].block != 0) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i + 1, ", ", padded, " with its padding, must be a multiple of the block size ",
                                                     blocks[i].block));
    }
    THALWEG_ASSIGN_OR_RETURN(dims[i + 1], ShapeContext::DivDims(padded, blocks[i].block));
  }
  return dims;
}

// The space side for a batch side of these dimensions; dimensions may be unknown.
absl::StatusOr<Dims> SpaceSide(Dims dims, const BlockDims& blocks) {
  THALWEG_ASSIGN_OR_RETURN(const int64_t product, BlockProduct(blocks));
  if (IsKnownDim(dims[0]) && dims[0] % product != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the batch of ", dims[0], " must be a multiple of the product of block sizes, ", product));
  }
  THALWEG_ASSIGN_OR_RETURN(dims[0], ShapeContext::DivDims(dims[0], product));
  for (size_t i = 0; i < blocks.size(); ++i) {
    int64_t border;
    if (!CheckedAdd(blocks[i].before, blocks[i].after, &border)) return absl::InvalidArgumentError("crops overflow");
    THALWEG_ASSIGN_OR_RETURN(const int64_t whole, ShapeContext::MulDims(dims[i + 1], blocks[i].block));
    if (IsKnownDim(whole) && border > whole) {
      return absl::InvalidArgumentError(absl::StrCat("crops [", blocks[i].before, ",", blocks[i].after, "] exceed dimension ", i + 1,
                                                     " of size ", whole));
    }
    THALWEG_ASSIGN_OR_RETURN(dims[i + 1], ShapeContext::SubDims(whole, border));
  }
  return dims;
}

// Copies every position that both sides have. Requires that both have elements, so that there are at most as many parts as
// elements.
void CopyParts(KernelContext& ctx, DType dtype, const Shape& space, const Shape& batch, const BlockDims& blocks, bool to_batch,
               const void* from, void* to) {
  const Dims space_strides = RowMajorStrides(space), batch_strides = RowMajorStrides(batch);
  const int64_t entries = space.dim(0), parts = batch.dim(0) / entries;
  const int64_t bytes = static_cast<int64_t>(ElementBytes(dtype));
  for (int64_t part = 0; part < parts && !ctx.step().cancelled(); ++part) {
    CopyDims dims = {{entries, space_strides[0], batch_strides[0]}};
    int64_t rest = part, at_space = 0, at_batch = part * entries * batch_strides[0];
    dims.resize(space.rank());
    for (int i = space.rank() - 1; i > 0; --i) {
      if (i > static_cast<int>(blocks.size())) {
        dims[i] = {space.dim(i), space_strides[i], batch_strides[i]};
        continue;
      }
      const BlockDim& d = blocks[i - 1];
      const int64_t place = rest % d.block;
      rest /= d.block;
      // Cells whose position, cell * block + place - before, lies inside.
      const int64_t first = place >= d.before ? 0 : (d.before - place + d.block - 1) / d.block;
      const int64_t behind = space.dim(i) + d.before - place;  // the first position that does not, in padded terms
      const int64_t last = behind <= 0 ? 0 : std::min(batch.dim(i), (behind + d.block - 1) / d.block);
      dims[i] = {std::max<int64_t>(0, last - first), space_strides[i] * d.block, batch_strides[i]};
      at_space += (first * d.block + place - d.before) * space_strides[i];
      at_batch += first * batch_strides[i];
    }
    const bool empty = std::any_of(dims.begin(), dims.end(), [](const CopyDim& d) { return d.extent == 0; });
    if (empty) continue;
    if (!to_batch) {
      for (CopyDim& d : dims) std::swap(d.src_stride, d.dst_stride);
    }
    StridedCopy(ctx, dtype, std::move(dims), static_cast<const char*>(from) + (to_batch ? at_space : at_batch) * bytes,
                static_cast<char*>(to) + (to_batch ? at_batch : at_space) * bytes);
  }
}

absl::Status Rearrange(KernelContext& ctx, const BlockDims& blocks, bool to_batch) {
  const Tensor& in = ctx.input(0);
  Dims dims(in.shape().dims().begin(), in.shape().dims().end());
  absl::StatusOr<Dims> out_dims = to_batch ? BatchSide(std::move(dims), blocks) : SpaceSide(std::move(dims), blocks);
  THALWEG_RETURN_IF_ERROR(out_dims.status());
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(*out_dims));
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (to_batch) std::memset(out->mutable_raw(), 0, static_cast<size_t>(shape.num_elements()) * DTypeSize(out->dtype()));
  if (in.num_elements() == 0 || shape.num_elements() == 0) return absl::OkStatus();
  CopyParts(ctx, in.dtype(), to_batch ? in.shape() : shape, to_batch ? shape : in.shape(), blocks, to_batch, in.raw(),
            out->mutable_raw());
  return absl::OkStatus();
}

template <bool kToBatch>
class SpaceBatchNdKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Dims sizes, IntVectorArg(ctx.input(1), "block_shape"));
    const Tensor& borders = ctx.input(2);
    if (borders.rank() != 2 || borders.dim(1) != 2) {
      return absl::InvalidArgumentError(absl::StrCat(kToBatch ? "paddings" : "crops", " must have two columns, but its shape is ",
                                                     borders.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Dims values, IntElementsArg(borders, kToBatch ? "paddings" : "crops", 2 * kMaxRank));
    THALWEG_ASSIGN_OR_RETURN(const BlockDims blocks, MakeBlockDims(sizes, values, ctx.input(0).rank()));
    return Rearrange(ctx, blocks, kToBatch);
  }
};

// Height and width of an image, with one block size for both.
template <bool kToBatch>
class SpaceBatch2dKernel : public Kernel {
 public:
  explicit SpaceBatch2dKernel(const KernelInit& init) : block_(init.node().node_attrs().GetOr<int64_t>("block_size", 2)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& borders = ctx.input(1);
    if (ctx.input(0).rank() != 4 || borders.shape() != Shape::Of({2, 2})) {
      return absl::InvalidArgumentError(absl::StrCat("input must have rank 4 and ", kToBatch ? "paddings" : "crops",
                                                     " shape [2,2], but their shapes are ", ctx.input(0).shape().ToString(), " and ",
                                                     borders.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Dims values, IntElementsArg(borders, kToBatch ? "paddings" : "crops"));
    THALWEG_ASSIGN_OR_RETURN(const BlockDims blocks, MakeBlockDims({block_, block_}, values, 4));
    return Rearrange(ctx, blocks, kToBatch);
  }

 private:
  const int64_t block_;
};

// The output's dimensions once blocks and borders are known; just the rank otherwise.
absl::Status SpaceBatchShape(ShapeContext& c, const std::optional<std::vector<int64_t>>& blocks,
                             const std::optional<std::vector<int64_t>>& borders, bool to_batch) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (!blocks || !borders) {
    c.set_output(0, PartialShape::UnknownOfRank(in.rank()));
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(const BlockDims dims, MakeBlockDims(*blocks, *borders, in.rank()));
  const Dims in_dims(in.dims().begin(), in.dims().end());
  absl::StatusOr<Dims> out = to_batch ? BatchSide(in_dims, dims) : SpaceSide(in_dims, dims);
  THALWEG_RETURN_IF_ERROR(out.status());
  return SetOutputDims(c, *std::move(out));
}

template <bool kToBatch>
absl::Status SpaceBatchNdShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(2, 2));
  return SpaceBatchShape(c, c.input_ints(1), c.input_ints(2), kToBatch);
}

template <bool kToBatch>
absl::Status SpaceBatch2dShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 4));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 2));
  const int64_t block = c.attrs().GetOr<int64_t>("block_size", 2);
  return SpaceBatchShape(c, std::vector<int64_t>{block, block}, c.input_ints(1), kToBatch);
}

// The types that TensorFlow has these kernels for.
KernelDef& RealNumbers(KernelDef& def) {
  return def.Type<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>("T");
}

}  // namespace

void RegisterSpaceBatchOps(OpLibrary& lib) {
  lib.schemas
      .Add("SpaceToBatchND(input: T, block_shape: Tblock_shape, paddings: Tpaddings) -> output: T",
           "T: type; Tblock_shape: {int32, int64} = int32; Tpaddings: {int32, int64} = int32")
      .Shape(SpaceBatchNdShape<true>)
      .Cost(CopyCost);
  RealNumbers(lib.kernels.Add("SpaceToBatchND", "cpu", MakeKernel<SpaceBatchNdKernel<true>>)).HostMemory("block_shape").HostMemory("paddings");
  lib.schemas
      .Add("BatchToSpaceND(input: T, block_shape: Tblock_shape, crops: Tcrops) -> output: T",
           "T: type; Tblock_shape: {int32, int64} = int32; Tcrops: {int32, int64} = int32")
      .Shape(SpaceBatchNdShape<false>)
      .Cost(CopyCost);
  RealNumbers(lib.kernels.Add("BatchToSpaceND", "cpu", MakeKernel<SpaceBatchNdKernel<false>>)).HostMemory("block_shape").HostMemory("crops");
  lib.schemas
      .Add("SpaceToBatch(input: T, paddings: Tpaddings) -> output: T",
           "T: type; Tpaddings: {int32, int64} = int32; block_size: int >= 2")
      .Shape(SpaceBatch2dShape<true>)
      .Cost(CopyCost);
  RealNumbers(lib.kernels.Add("SpaceToBatch", "cpu", MakeKernel<SpaceBatch2dKernel<true>>)).HostMemory("paddings");
  lib.schemas
      .Add("BatchToSpace(input: T, crops: Tidx) -> output: T", "T: type; block_size: int >= 2; Tidx: {int32, int64} = int32")
      .Shape(SpaceBatch2dShape<false>)
      .Cost(CopyCost);
  RealNumbers(lib.kernels.Add("BatchToSpace", "cpu", MakeKernel<SpaceBatch2dKernel<false>>)).HostMemory("crops");
}

}  // namespace thalweg
