// DepthToSpace and SpaceToDepth: blocks of pixels traded for channels.
//
// Both are one transposition of the input seen with its block dimensions apart.
#include <algorithm>
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

// Where batch, height, width and channels stand.
struct Layout {
  int height;
  int width;
  int channels;
};
constexpr Layout kNhwc{1, 2, 3};
constexpr Layout kNchw{2, 3, 1};

absl::StatusOr<Layout> LayoutOf(const NodeAttrs& attrs) {
  const std::string format = attrs.GetOr<std::string>("data_format", "NHWC");
  if (format == "NHWC") return kNhwc;
  if (format == "NCHW") return kNchw;
  return absl::InvalidArgumentError(absl::StrCat("data_format ", format, " is not supported here; NHWC and NCHW are"));
}

absl::StatusOr<int64_t> BlockOf(const NodeAttrs& attrs) {
  THALWEG_ASSIGN_OR_RETURN(const int64_t block, attrs.Get<int64_t>("block_size"));
  // The square of the block must fit too.
  if (block < 2 || block > (int64_t{1} << 31)) {
    return absl::InvalidArgumentError(absl::StrCat("block_size is ", block, "; it must be in [2,2^31]"));
  }
  return block;
}

absl::Status RequireMultiple(int64_t dim, int64_t factor, const char* what) {
  if (dim % factor == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", dim, " must be a multiple of ", factor, " (from block_size)"));
}

absl::StatusOr<Dims> SpaceDims(const Layout& layout, Dims dims, int64_t block) {
  if (IsKnownDim(dims[layout.channels])) {
    THALWEG_RETURN_IF_ERROR(RequireMultiple(dims[layout.channels], block * block, "depth"));
  }
  THALWEG_ASSIGN_OR_RETURN(dims[layout.channels], ShapeContext::DivDims(dims[layout.channels], block * block));
  THALWEG_ASSIGN_OR_RETURN(dims[layout.height], ShapeContext::MulDims(dims[layout.height], block));
  THALWEG_ASSIGN_OR_RETURN(dims[layout.width], ShapeContext::MulDims(dims[layout.width], block));
  return dims;
}

absl::StatusOr<Dims> DepthDims(const Layout& layout, Dims dims, int64_t block) {
  if (IsKnownDim(dims[layout.height])) THALWEG_RETURN_IF_ERROR(RequireMultiple(dims[layout.height], block, "height"));
  if (IsKnownDim(dims[layout.width])) THALWEG_RETURN_IF_ERROR(RequireMultiple(dims[layout.width], block, "width"));
  THALWEG_ASSIGN_OR_RETURN(dims[layout.channels], ShapeContext::MulDims(dims[layout.channels], block * block));
  THALWEG_ASSIGN_OR_RETURN(dims[layout.height], ShapeContext::DivDims(dims[layout.height], block));
  THALWEG_ASSIGN_OR_RETURN(dims[layout.width], ShapeContext::DivDims(dims[layout.width], block));
  return dims;
}

// The index space (batch, height/b, b, width/b, b, depth) with the strides of its elements in the large image and in
// the deep one. In the deep image a pixel's channels are ordered by block row, block column, depth.
CopyDims BlockSpace(const Layout& layout, const Shape& large, const Shape& deep, int64_t block, bool from_large) {
  const Dims l = RowMajorStrides(large);
  const Dims d = RowMajorStrides(deep);
  const int64_t depth = large.dim(layout.channels);
  const int64_t channel = d[layout.channels];
  CopyDims dims = {
      {large.dim(0), l[0], d[0]},
      {deep.dim(layout.height), l[layout.height] * block, d[layout.height]},
      {block, l[layout.height], channel * depth * block},
      {deep.dim(layout.width), l[layout.width] * block, d[layout.width]},
      {block, l[layout.width], channel * depth},
      {depth, l[layout.channels], channel},
  };
  if (!from_large) {
    for (CopyDim& dim : dims) std::swap(dim.src_stride, dim.dst_stride);
  }
  // Innermost where the destination is contiguous; the order of the rest is free.
  std::stable_sort(dims.begin(), dims.end(),
                   [](const CopyDim& a, const CopyDim& b) { return a.dst_stride > b.dst_stride; });
  return dims;
}

template <bool kToDepth>
class DepthSpaceKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(init.node().node_attrs()));
    THALWEG_ASSIGN_OR_RETURN(const int64_t block, BlockOf(init.node().node_attrs()));
    return std::unique_ptr<Kernel>(new DepthSpaceKernel(layout, block));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("input must have rank 4, but its shape is ", in.shape().ToString()));
    }
    const Dims in_dims(in.shape().dims().begin(), in.shape().dims().end());
    THALWEG_ASSIGN_OR_RETURN(const Dims out_dims,
                             kToDepth ? DepthDims(layout_, in_dims, block_) : SpaceDims(layout_, in_dims, block_));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(out_dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const Shape& large = kToDepth ? in.shape() : shape;
    const Shape& deep = kToDepth ? shape : in.shape();
    StridedCopy(ctx, in.dtype(), BlockSpace(layout_, large, deep, block_, kToDepth), in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  DepthSpaceKernel(Layout layout, int64_t block) : layout_(layout), block_(block) {}
  const Layout layout_;
  const int64_t block_;
};

template <bool kToDepth>
absl::Status DepthSpaceShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  THALWEG_ASSIGN_OR_RETURN(const int64_t block, BlockOf(c.attrs()));
  const absl::StatusOr<Layout> layout = LayoutOf(c.attrs());
  if (!layout.ok()) return absl::OkStatus();  // no kernel will run it; its rank is not 4
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 4));
  const Dims in_dims = in.has_rank() ? Dims(in.dims().begin(), in.dims().end()) : Dims(4, kUnknownDim);
  THALWEG_ASSIGN_OR_RETURN(Dims dims,
                           kToDepth ? DepthDims(*layout, in_dims, block) : SpaceDims(*layout, in_dims, block));
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterDepthSpaceOps(OpLibrary& lib) {
  const char* attrs = "T: type; block_size: int >= 2; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"";
  lib.schemas.Add("DepthToSpace(input: T) -> output: T", attrs).Shape(DepthSpaceShape<false>).Cost(MovedBytesCost);
  lib.schemas.Add("SpaceToDepth(input: T) -> output: T", attrs).Shape(DepthSpaceShape<true>).Cost(MovedBytesCost);
  lib.kernels.Add("DepthToSpace", "cpu", MakeFallibleKernel<DepthSpaceKernel<false>>);
  lib.kernels.Add("SpaceToDepth", "cpu", MakeFallibleKernel<DepthSpaceKernel<true>>);
}

}  // namespace thalweg
