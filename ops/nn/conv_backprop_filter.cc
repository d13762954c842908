// Conv2DBackpropFilter: the gradient of Conv2D with respect to its filter: for each window position and input channel, the
// sum over all output positions of what the window saw there times the gradient. One matrix product per run of positions
// (patches, transposed, times gradient), added up in a fixed order, so results do not depend on the number of threads.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/common/gemm.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/nn/conv_compute.h"
#include "thalweg/ops/nn/conv_geometry.h"
#include "thalweg/ops/nn/layout.h"
#include "thalweg/ops/nn/nn_ops.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

using onednn::ConvProblem;

// Patches of this size are built at a time.
constexpr int64_t kPatchBytes = 8 << 20;

// T is the computing type.
template <typename T>
class ConvBackpropFilterKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(WindowAttrs window, ParseWindowAttrs(init.node().node_attrs(), 2));
    THALWEG_RETURN_IF_ERROR(CheckConvWindow(window));
    for (const WindowDim& dim : window.dims) {
      if (dim.dilation == 1) continue;
      return absl::InvalidArgumentError(absl::StrCat("Conv2DBackpropFilter does not support dilations; one is ", dim.dilation));
    }
    return std::unique_ptr<Kernel>(std::make_unique<ConvBackpropFilterKernel>(std::move(window)));
  }
  explicit ConvBackpropFilterKernel(WindowAttrs window) : window_(std::move(window)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape filter, ShapeArg(ctx.input(1), "filter_sizes"));
    const Shape& gradient_shape = ctx.input(2).shape();
    THALWEG_ASSIGN_OR_RETURN(const ConvGeometry geometry,
                             FitConvolution(window_, ConvKind::kUngrouped, ctx.input(0).shape(), filter));
    if (gradient_shape != geometry.output) {
      return absl::InvalidArgumentError(absl::StrCat("out_backprop has shape ", gradient_shape.ToString(), " but a convolution of ",
                                                     ctx.input(0).shape().ToString(), " with a filter of ", filter.ToString(),
                                                     " gives ", geometry.output.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, filter));
    T* sums = static_cast<T*>(output.data());
    std::fill_n(sums, filter.num_elements(), T(0));
    if (!geometry.trivial && gradient_shape.num_elements() > 0) {
      THALWEG_ASSIGN_OR_RETURN(const Tensor input, ChannelsLast(ctx, ctx.input(0)));
      THALWEG_ASSIGN_OR_RETURN(const Tensor gradient, ChannelsLast(ctx, ctx.input(2)));
      THALWEG_RETURN_IF_ERROR(AddUp(ctx, geometry.problem, static_cast<const T*>(input.raw()),
                                    static_cast<const T*>(gradient.raw()), sums));
    }
    output.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Tensor> ChannelsLast(KernelContext& ctx, const Tensor& t) const {
    THALWEG_ASSIGN_OR_RETURN(Tensor computing, ToComputing(ctx, t));
    if (!window_.channels_first) return computing;
    return ToChannelsLast(ctx, computing);
  }

  static absl::Status AddUp(KernelContext& ctx, const ConvProblem& p, const T* input, const T* gradient, T* sums) {
    const int64_t depth = p.FilterTaps() * p.in_channels, elements = depth * p.out_channels, positions = p.Positions();
    const int64_t per_run = std::clamp<int64_t>(kPatchBytes / static_cast<int64_t>(sizeof(T)) / depth, 1, positions);
    THALWEG_ASSIGN_OR_RETURN(Tensor patches, ctx.AllocateTemp(DTypeOf<T>::value, Shape::Of({per_run, depth})));
    THALWEG_ASSIGN_OR_RETURN(Tensor products, ctx.AllocateTemp(DTypeOf<T>::value, Shape::Of({elements})));
    const int64_t image_elements = p.dims[0].in * p.dims[1].in * p.in_channels;
    T* const patch = patches.mutable_flat<T>().data();
    T* const product = products.mutable_flat<T>().data();
    for (int64_t image = 0; image < p.batch; ++image) {
      for (int64_t first = 0; first < positions && !ctx.step().cancelled(); first += per_run) {
        const int64_t last = std::min(first + per_run, positions);
        ctx.ParallelFor(last - first, 0.3 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
          ReadPatches(p, input + image * image_elements, first + begin, first + end, patch + begin * depth);
        });
        GemmArgs<T> gemm;
        gemm.m = gemm.lda = depth;
        gemm.n = gemm.ldb = gemm.ldc = p.out_channels;
        gemm.k = last - first;
        gemm.a = patch;
        gemm.transpose_a = true;
        gemm.b = gradient + (image * positions + first) * p.out_channels;
        gemm.c = product;
        THALWEG_RETURN_IF_ERROR(Multiply(ctx, gemm));
        ctx.ParallelFor(elements, 0.3, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) sums[i] += product[i];
        });
      }
    }
    return absl::OkStatus();
  }

  static absl::Status Multiply(KernelContext& ctx, const GemmArgs<T>& gemm) {
    const GemmTiles tiles = TileGemm(gemm.m, gemm.n, gemm.k, ctx.step().num_threads());
    FirstError error;
    ctx.ParallelFor(tiles.count(), GemmNanos(DTypeOf<T>::value, tiles.rows, tiles.cols, gemm.k), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) error.Update(GemmTile(gemm, tiles, i));
    });
    return error.status();
  }

  const WindowAttrs window_;
};

absl::Status BackpropFilterShape(ShapeContext& c) {
  // Neither input and gradient nor strides and padding matter to the shape, so what is wrong with them is for the kernel to say.
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  THALWEG_ASSIGN_OR_RETURN(PartialShape filter, c.input_as_shape(1));
  if (!filter.has_rank()) filter = PartialShape::UnknownOfRank(4);
  if (filter.rank() != 4) {
    return absl::InvalidArgumentError(absl::StrCat("filter_sizes must have 4 elements but has ", filter.rank()));
  }
  c.set_output(0, std::move(filter));
  return absl::OkStatus();
}

NodeCost BackpropFilterCost(const CostContext& c) { return ConvBackpropCost(c, c.output(0)); }

}  // namespace

void RegisterConvBackpropFilterOps(OpLibrary& lib) {
  lib.schemas
      .Add("Conv2DBackpropFilter(input: T, filter_sizes: int32, out_backprop: T) -> output: T",
           "T: {half, bfloat16, float, double}; strides: list(int); use_cudnn_on_gpu: bool = true; "
           "padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; "
           "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]")
      .Shape(BackpropFilterShape)
      .Cost(BackpropFilterCost);
  constexpr char kOp[] = "Conv2DBackpropFilter";
  lib.kernels.Add(kOp, "cpu", MakeFallibleKernel<ConvBackpropFilterKernel<float>>)
      .Type<float, half, bfloat16>("T")
      .HostMemory("filter_sizes");
  lib.kernels.Add(kOp, "cpu", MakeFallibleKernel<ConvBackpropFilterKernel<double>>).Type<double>("T").HostMemory("filter_sizes");
}

}  // namespace thalweg
