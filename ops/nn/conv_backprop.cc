// Conv2DBackpropInput: the gradient of Conv2D with respect to its input, which is also the transposed convolution that
// networks use to enlarge images.
//
// Every output pixel of the convolution spreads its gradient over the window it came from. One matrix product computes
// all that it spreads (gradient times transposed filter); a second pass gathers, for each input pixel, its shares in a
// fixed order, so results do not depend on the number of threads.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/common/gemm.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/nn/conv_geometry.h"
#include "thalweg/ops/nn/layout.h"
#include "thalweg/ops/nn/nn_ops.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

using onednn::ConvProblem;

// The shape of the input whose gradient is wanted: `sizes` holds it all or, since the batch is known from the gradient,
// only the two spatial sizes.
absl::StatusOr<Shape> InputShape(const WindowAttrs& window, absl::Span<const int64_t> sizes, int64_t batch,
                                 int64_t channels) {
  Dims dims(sizes.begin(), sizes.end());
  if (dims.size() == static_cast<size_t>(window.spatial)) {
    dims.insert(dims.begin() + (window.channels_first ? 0 : window.spatial), channels);
    dims.insert(dims.begin(), batch);
  }
  if (dims.size() != static_cast<size_t>(window.rank())) {
    return absl::InvalidArgumentError(absl::StrCat("input_sizes must have 4 or 2 elements but has ", sizes.size()));
  }
  return Shape::Make(dims);
}

// Fits the convolution that this is the gradient of, and checks that the gradient has the shape of its output.
absl::StatusOr<ConvGeometry> FitGradient(const WindowAttrs& window, absl::Span<const int64_t> sizes,
                                         const Shape& filter, const Shape& gradient) {
  if (gradient.rank() != window.rank() || filter.rank() != window.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("filter and out_backprop must have rank ", window.rank(),
                                                   " but have the shapes ", filter.ToString(), " and ",
                                                   gradient.ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(const Shape input, InputShape(window, sizes, gradient.dim(0), filter.dim(window.spatial)));
  if (input.dim(window.channel_dim()) != filter.dim(window.spatial)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input_sizes ", input.ToString(), " has ", input.dim(window.channel_dim()),
                     " channels but the filter, of shape ", filter.ToString(), ", ", filter.dim(window.spatial)));
  }
  if (filter.dim(window.spatial) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the filter must have input channels but has shape ", filter.ToString()));
  }
  ConvGeometry g;
  g.output = input;
  g.trivial = input.num_elements() == 0 || filter.num_elements() == 0 || gradient.num_elements() == 0;
  g.problem.batch = input.dim(0);
  g.problem.in_channels = filter.dim(window.spatial);
  g.problem.out_channels = filter.dim(window.spatial + 1);
  Dims expected(window.rank());
  expected[0] = input.dim(0);
  expected[window.channel_dim()] = g.problem.out_channels;
  for (int i = 0; i < window.spatial; ++i) {
    const int d = window.spatial_dim(i);
    THALWEG_ASSIGN_OR_RETURN(const WindowFit fit,
                             FitWindow(input.dim(d), filter.dim(i), window.dims[i], window.padding));
    g.problem.dims[i] = {input.dim(d), fit.out, filter.dim(i), window.dims[i].stride, 1, fit.pad_before, fit.pad_after};
    expected[d] = fit.out;
  }
  if (!std::equal(expected.begin(), expected.end(), gradient.dims().begin())) {
    return absl::InvalidArgumentError(
        absl::StrCat("out_backprop has shape ", gradient.ToString(), " but a convolution of ", input.ToString(),
                     " with a filter of ", filter.ToString(), " gives ", PartialShape::OfDims(expected).ToString()));
  }
  return g;
}

// acc[c] += in[c].
template <typename T>
THALWEG_CLONES void AddTo(const T* in, int64_t n, T* acc) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) acc[c] += in[c];
}

// Integers wrap.
inline void AddTo(const int32_t* in, int64_t n, int32_t* acc) {
  AddTo(reinterpret_cast<const uint32_t*>(in), n, reinterpret_cast<uint32_t*>(acc));
}

// The windows along one dimension that contain input position `in`: calls fn(out, tap) for each in order of taps.
template <typename F>
void ForEachWindow(const ConvProblem::Dim& d, int64_t in, F fn) {
  for (int64_t tap = 0; tap < d.window; ++tap) {
    const int64_t distance = in + d.pad_before - tap;
    if (distance < 0 || distance % d.stride != 0 || distance / d.stride >= d.out) continue;
    fn(distance / d.stride, tap);
  }
}

// One row of the input's gradient. `shares` holds for each output pixel its share for each window position and channel.
template <typename T>
void GatherRow(const ConvProblem& p, const T* shares, int64_t row, T* out) {
  const ConvProblem::Dim& y = p.dims[0];
  const ConvProblem::Dim& x = p.dims[1];
  const int64_t channels = p.in_channels, share = y.window * x.window * channels;
  std::fill_n(out, x.in * channels, T(0));
  ForEachWindow(y, row, [&](int64_t oy, int64_t ky) {
    for (int64_t ix = 0; ix < x.in; ++ix) {
      ForEachWindow(x, ix, [&](int64_t ox, int64_t kx) {
        AddTo(shares + (oy * x.out + ox) * share + (ky * x.window + kx) * channels, channels, out + ix * channels);
      });
    }
  });
}

// T is the computing type: float, double or int32_t.
template <typename T>
class ConvBackpropInputKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(WindowAttrs window, ParseWindowAttrs(init.node().node_attrs(), 2));
    THALWEG_RETURN_IF_ERROR(CheckConvWindow(window));
    for (const WindowDim& dim : window.dims) {
      if (dim.dilation != 1)
        return absl::InvalidArgumentError(
            absl::StrCat("Conv2DBackpropInput does not support dilations; one is ", dim.dilation));
    }
    return std::unique_ptr<Kernel>(std::make_unique<ConvBackpropInputKernel>(std::move(window)));
  }
  explicit ConvBackpropInputKernel(WindowAttrs window) : window_(std::move(window)) {}

  absl::Status Compute(KernelContext& ctx) override;

 private:
  absl::Status Backpropagate(KernelContext& ctx, const ConvGeometry& geometry, T* out) const;
  absl::Status BackpropagateImage(KernelContext& ctx, const ConvProblem& p, const T* gradient, const T* filter,
                                  T* shares, T* out) const;

  const WindowAttrs window_;
};

absl::StatusOr<Dims> ReadSizes(const Tensor& sizes) {
  if (sizes.rank() != 1)
    return absl::InvalidArgumentError(
        absl::StrCat("input_sizes must be a vector but has shape ", sizes.shape().ToString()));
  const absl::Span<const int32_t> values = sizes.flat<int32_t>();
  if (values.size() > 4)
    return absl::InvalidArgumentError(absl::StrCat("input_sizes must have 4 or 2 elements but has ", values.size()));
  return Dims(values.begin(), values.end());
}

template <typename T>
absl::Status ConvBackpropInputKernel<T>::Compute(KernelContext& ctx) {
  THALWEG_ASSIGN_OR_RETURN(const Dims sizes, ReadSizes(ctx.input(0)));
  THALWEG_ASSIGN_OR_RETURN(const ConvGeometry geometry,
                           FitGradient(window_, sizes, ctx.input(1).shape(), ctx.input(2).shape()));
  if (!window_.channels_first) {
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, geometry.output));
    THALWEG_RETURN_IF_ERROR(Backpropagate(ctx, geometry, static_cast<T*>(output.data())));
    output.Finish(ctx);
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor computed, ctx.AllocateTemp(DTypeOf<T>::value, ChannelsLastShape(geometry.output)));
  THALWEG_RETURN_IF_ERROR(Backpropagate(ctx, geometry, static_cast<T*>(computed.mutable_raw())));
  THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, geometry.output));
  StoreChannelsFirst(ctx, computed, output.mutable_tensor());
  output.Finish(ctx);
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvBackpropInputKernel<T>::Backpropagate(KernelContext& ctx, const ConvGeometry& geometry, T* out) const {
  if (geometry.trivial) {
    std::fill_n(out, geometry.output.num_elements(), T(0));
    return absl::OkStatus();
  }
  const ConvProblem& p = geometry.problem;
  THALWEG_ASSIGN_OR_RETURN(Tensor gradient, ToComputing(ctx, ctx.input(2)));
  if (window_.channels_first) {
    THALWEG_ASSIGN_OR_RETURN(gradient, ToChannelsLast(ctx, gradient));
  }
  THALWEG_ASSIGN_OR_RETURN(const Tensor filter, ToComputing(ctx, ctx.input(1)));
  const int64_t gradient_image = p.Positions() * p.out_channels,
                out_image = p.dims[0].in * p.dims[1].in * p.in_channels;
  int64_t shares_size;
  if (!CheckedMul(p.Positions(), p.FilterTaps() * p.in_channels, &shares_size)) {
    return absl::ResourceExhaustedError("the intermediate product of a convolution's gradient is too large");
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor shares, ctx.AllocateTemp(DTypeOf<T>::value, Shape::Of({shares_size})));
  for (int64_t image = 0; image < p.batch && !ctx.step().cancelled(); ++image) {
    THALWEG_RETURN_IF_ERROR(BackpropagateImage(ctx, p, static_cast<const T*>(gradient.raw()) + image * gradient_image,
                                               static_cast<const T*>(filter.raw()),
                                               static_cast<T*>(shares.mutable_raw()), out + image * out_image));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvBackpropInputKernel<T>::BackpropagateImage(KernelContext& ctx, const ConvProblem& p, const T* gradient,
                                                            const T* filter, T* shares, T* out) const {
  GemmArgs<T> gemm;
  gemm.m = p.Positions();
  gemm.n = p.FilterTaps() * p.in_channels;
  gemm.k = gemm.lda = gemm.ldb = p.out_channels;
  gemm.ldc = gemm.n;
  gemm.a = gradient;
  gemm.b = filter;
  gemm.transpose_b = true;
  gemm.c = shares;
  const GemmTiles tiles = TileGemm(gemm.m, gemm.n, gemm.k, ctx.step().num_threads());
  FirstError error;
  ctx.ParallelFor(tiles.count(), GemmNanos(DTypeOf<T>::value, tiles.rows, tiles.cols, gemm.k),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) error.Update(GemmTile(gemm, tiles, i));
                  });
  THALWEG_RETURN_IF_ERROR(error.status());
  const int64_t row_elements = p.dims[1].in * p.in_channels;
  ctx.ParallelFor(p.dims[0].in, 0.2 * static_cast<double>(row_elements) * static_cast<double>(p.FilterTaps()),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) GatherRow(p, shares, row, out + row * row_elements);
                  });
  return absl::OkStatus();
}

absl::Status BackpropInputShape(ShapeContext& c) {
  // Strides and padding do not matter to the shape, so what is wrong with them is for the kernel to say.
  WindowAttrs window;
  window.channels_first = c.attrs().GetOr<std::string>("data_format", "NHWC") == "NCHW";
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, window.rank()));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(2, window.rank()));
  THALWEG_ASSIGN_OR_RETURN(PartialShape sizes, c.input_as_shape(0));
  const int64_t batch = c.input(2).has_rank() ? c.input(2).dim(0) : kUnknownDim;
  const int64_t channels = c.input(1).has_rank() ? c.input(1).dim(window.spatial) : kUnknownDim;
  if (sizes.has_rank() && sizes.rank() != window.rank() && sizes.rank() != window.spatial) {
    return absl::InvalidArgumentError(absl::StrCat("input_sizes must have 4 or 2 elements but has ", sizes.rank()));
  }
  if (sizes.has_rank() && sizes.rank() == window.rank()) {
    if (!IsKnownDim(sizes.dim(0))) sizes.set_dim(0, batch);
    c.set_output(0, std::move(sizes));
    return absl::OkStatus();
  }
  Dims dims(window.rank(), kUnknownDim);
  dims[0] = batch;
  dims[window.channel_dim()] = channels;
  for (int i = 0; i < window.spatial && sizes.has_rank(); ++i) dims[window.spatial_dim(i)] = sizes.dim(i);
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

NodeCost BackpropInputCost(const CostContext& c) { return ConvBackpropCost(c, c.input(1)); }

}  // namespace

void RegisterConvBackpropOps(OpLibrary& lib) {
  lib.schemas
      .Add("Conv2DBackpropInput(input_sizes: int32, filter: T, out_backprop: T) -> output: T",
           "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "
           "padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; "
           "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]")
      .Shape(BackpropInputShape)
      .Cost(BackpropInputCost);
  constexpr char kOp[] = "Conv2DBackpropInput";
  lib.kernels.Add(kOp, "cpu", MakeFallibleKernel<ConvBackpropInputKernel<float>>)
      .Type<float, half, bfloat16>("T")
      .HostMemory("input_sizes");
  lib.kernels.Add(kOp, "cpu", MakeFallibleKernel<ConvBackpropInputKernel<double>>)
      .Type<double>("T")
      .HostMemory("input_sizes");
  lib.kernels.Add(kOp, "cpu", MakeFallibleKernel<ConvBackpropInputKernel<int32_t>>)
      .Type<int32_t>("T")
      .HostMemory("input_sizes");
}

}  // namespace thalweg
