// Conv2D, Conv3D, DepthwiseConv2dNative, and Conv2D and DepthwiseConv2dNative with what follows them fused in.
#include <algorithm>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/epilogue.h"
#include "thalweg/ops/nn/conv_compute.h"
#include "thalweg/ops/nn/conv_geometry.h"
#include "thalweg/ops/nn/layout.h"
#include "thalweg/ops/nn/nn_ops.h"

namespace thalweg {
namespace {

using onednn::ConvProblem;

// What sets the convolution ops apart.
struct ConvOp {
  int spatial = 2;
  ConvKind kind = ConvKind::kPlain;
  bool fused = false;
};

// Copies every channel of an image `times` times next to itself: a depthwise convolution with a multiplier is one
// without on that image, with the same filter.
template <typename T>
void RepeatChannels(KernelContext& ctx, const T* in, int64_t elements, int64_t times, T* out) {
  ctx.ParallelFor(elements, 0.2 * static_cast<double>(times), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::fill_n(out + i * times, times, in[i]);
  });
}

bool HasConstantFilter(const KernelInit& init) { return init.constant_input(1) != nullptr; }

// T is the computing type: float, double or int32_t.
template <typename T>
class ConvKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Make(const KernelInit& init, ConvOp op);

  ConvKernel(const KernelInit& init, ConvOp op, WindowAttrs window, FusedOps fused)
      : op_(op), window_(std::move(window)), fused_(fused), convolver_(HasConstantFilter(init)) {}

  absl::Status Compute(KernelContext& ctx) override;

 private:
  void Prepare(const KernelInit& init);
  // The problem as it is computed: a depthwise convolution with a channel multiplier sees each channel repeated.
  ConvProblem WithRepeatedChannels(const ConvProblem& problem) const;
  absl::Status ReadEpilogue(KernelContext& ctx, const ConvGeometry& geometry, EpilogueArgs<T>* args) const;
  absl::Status Convolve(KernelContext& ctx, const ConvGeometry& geometry, const Epilogue<T>& epilogue, T* out);
  absl::Status ConvolveImage(KernelContext& ctx, const ConvProblem& problem, const T* in, const Epilogue<T>& epilogue,
                             T* out);

  const ConvOp op_;
  const WindowAttrs window_;
  const FusedOps fused_;
  FloatConvolver convolver_;  // used if T is float
};

// Things that TensorFlow's CPU kernels refuse, and graphs that rely on being refused exist.
absl::Status CheckSupported(const ConvOp& op, const WindowAttrs& window) {
  for (const WindowDim& dim : window.dims) {
    if (dim.dilation == 1) continue;
    if (op.kind == ConvKind::kDepthwise) {
      return absl::UnimplementedError(
          absl::StrCat("depthwise convolutions do not support dilations; one is ", dim.dilation));
    }
  }
  if (op.kind == ConvKind::kDepthwise && window.dims[0].stride != window.dims[1].stride) {
    return absl::InvalidArgumentError(absl::StrCat("the strides of a depthwise convolution must be equal but are ",
                                                   window.dims[0].stride, " and ", window.dims[1].stride));
  }
  if (op.spatial == 3 && window.channels_first) {
    return absl::InvalidArgumentError("Conv3D supports only the data_format NDHWC");
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<std::unique_ptr<Kernel>> ConvKernel<T>::Make(const KernelInit& init, ConvOp op) {
  THALWEG_ASSIGN_OR_RETURN(WindowAttrs window, ParseWindowAttrs(init.node().node_attrs(), op.spatial));
  THALWEG_RETURN_IF_ERROR(CheckConvWindow(window));
  THALWEG_RETURN_IF_ERROR(CheckSupported(op, window));
  FusedOps fused;
  if (op.fused) {
    THALWEG_ASSIGN_OR_RETURN(fused, ParseFusedOps(init.node().node_attrs()));
    if (init.node().node_attrs().GetOr<std::string>("filter_format", "HWIO") != "HWIO") {
      return absl::UnimplementedError("a fused convolution supports only the filter_format HWIO");
    }
  }
  auto kernel = std::make_unique<ConvKernel>(init, op, std::move(window), fused);
  if constexpr (std::is_same_v<T, float>) kernel->Prepare(init);
  return std::unique_ptr<Kernel>(std::move(kernel));
}

// An open batch is taken for one image, as most are.
template <typename T>
void ConvKernel<T>::Prepare(const KernelInit& init) {
  PartialShape images = init.input_shape(0);
  if (!HasConstantFilter(init) || !images.has_rank() || images.rank() != window_.rank()) return;
  if (!IsKnownDim(images.dim(0))) images.set_dim(0, 1);
  const absl::StatusOr<Shape> input = images.ToShape();
  if (!input.ok()) return;
  const absl::StatusOr<ConvGeometry> geometry =
      FitConvolution(window_, op_.kind, *input, init.constant_input(1)->shape);
  if (!geometry.ok() || geometry->trivial) return;
  convolver_.Prepare(init, WithRepeatedChannels(geometry->problem), !fused_.empty());
}

template <typename T>
ConvProblem ConvKernel<T>::WithRepeatedChannels(const ConvProblem& problem) const {
  if (op_.kind != ConvKind::kDepthwise) return problem;
  ConvProblem repeated = problem;
  repeated.in_channels = repeated.groups = problem.out_channels;
  return repeated;
}

template <typename T>
absl::Status ConvKernel<T>::Compute(KernelContext& ctx) {
  THALWEG_ASSIGN_OR_RETURN(const ConvGeometry geometry,
                           FitConvolution(window_, op_.kind, ctx.input(0).shape(), ctx.input(1).shape()));
  // As in TensorFlow, whose Conv2D takes a filter without output channels.
  if (op_.spatial == 3 && ctx.input(1).num_elements() == 0) return EmptyFilter(ctx.input(1).shape());
  EpilogueArgs<T> args;
  if constexpr (!std::is_integral_v<T>) {
    if (op_.fused) THALWEG_RETURN_IF_ERROR(ReadEpilogue(ctx, geometry, &args));
  }
  if (!window_.channels_first) {
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, geometry.output));
    THALWEG_RETURN_IF_ERROR(Convolve(ctx, geometry, args.epilogue(), static_cast<T*>(output.data())));
    output.Finish(ctx);
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor computed, ctx.AllocateTemp(DTypeOf<T>::value, ChannelsLastShape(geometry.output)));
  THALWEG_RETURN_IF_ERROR(Convolve(ctx, geometry, args.epilogue(), static_cast<T*>(computed.mutable_raw())));
  THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, geometry.output));
  StoreChannelsFirst(ctx, computed, output.mutable_tensor());
  output.Finish(ctx);
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvKernel<T>::ReadEpilogue(KernelContext& ctx, const ConvGeometry& geometry,
                                         EpilogueArgs<T>* args) const {
  THALWEG_RETURN_IF_ERROR(args->Read(ctx, fused_, 2, geometry.problem.out_channels));
  if (!fused_.add) return absl::OkStatus();
  const Tensor& added = ctx.input(2 + fused_.num_args() - 1);
  if (added.shape() != geometry.output) {
    return absl::InvalidArgumentError(absl::StrCat("what is added must have the shape of the output, ",
                                                   geometry.output.ToString(), ", but has ", added.shape().ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor computing, ToComputing(ctx, added));
  if (window_.channels_first) {
    THALWEG_ASSIGN_OR_RETURN(computing, ToChannelsLast(ctx, computing));
  }
  args->set_add(std::move(computing));
  return absl::OkStatus();
}

template <typename T>
absl::Status ConvKernel<T>::Convolve(KernelContext& ctx, const ConvGeometry& geometry, const Epilogue<T>& epilogue,
                                     T* out) {
  const ConvProblem& problem = geometry.problem;
  for (const WindowDim& dim : window_.dims) {
    // Not even TensorFlow minds them where there is nothing to compute.
    if (op_.spatial < 3 || dim.dilation == 1 || geometry.output.num_elements() == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("Conv3D does not support dilations; one is ", dim.dilation));
  }
  if (geometry.trivial) {
    std::fill_n(out, geometry.output.num_elements(), T(0));
    if constexpr (!std::is_integral_v<T>)
      ApplyEpilogue(epilogue, 0, problem.batch * problem.Positions(), problem.out_channels, out);
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor in, ToComputing(ctx, ctx.input(0)));
  if (window_.channels_first) {
    THALWEG_ASSIGN_OR_RETURN(in, ToChannelsLast(ctx, in));
  }
  const T* pixels = static_cast<const T*>(in.raw());
  const int64_t multiplier = problem.out_channels / problem.in_channels;
  if (op_.kind != ConvKind::kDepthwise || multiplier == 1) return ConvolveImage(ctx, problem, pixels, epilogue, out);
  int64_t repeated_elements;
  if (!CheckedMul(in.num_elements(), multiplier, &repeated_elements)) {
    return absl::ResourceExhaustedError("the input times the channel multiplier is too large");
  }
  THALWEG_ASSIGN_OR_RETURN(Tensor repeated, ctx.AllocateTemp(DTypeOf<T>::value, Shape::Of({repeated_elements})));
  RepeatChannels(ctx, pixels, in.num_elements(), multiplier, static_cast<T*>(repeated.mutable_raw()));
  return ConvolveImage(ctx, WithRepeatedChannels(problem), static_cast<const T*>(repeated.raw()), epilogue, out);
}

template <typename T>
absl::Status ConvKernel<T>::ConvolveImage(KernelContext& ctx, const ConvProblem& problem, const T* in,
                                          const Epilogue<T>& epilogue, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    return convolver_.Run(ctx, problem, in, ctx.input(1), epilogue, out);
  } else {
    const T* filter = static_cast<const T*>(ctx.input(1).raw());
    if constexpr (std::is_same_v<T, double>) {
      if (op_.kind == ConvKind::kDepthwise) {
        DepthwiseConvolution(ctx, problem, in, filter, epilogue, out);
        return absl::OkStatus();
      }
    }
    return PatchConvolution(ctx, problem, in, filter, epilogue, out);
  }
}

constexpr ConvOp kConv2D{2, ConvKind::kPlain, false};
constexpr ConvOp kConv3D{3, ConvKind::kUngrouped, false};
constexpr ConvOp kDepthwise{2, ConvKind::kDepthwise, false};
constexpr ConvOp kFusedConv2D{2, ConvKind::kPlain, true};
constexpr ConvOp kFusedDepthwise{2, ConvKind::kDepthwise, true};

template <typename T, const ConvOp& op>
absl::StatusOr<std::unique_ptr<Kernel>> MakeConv(const KernelInit& init) {
  return ConvKernel<T>::Make(init, op);
}

template <const ConvOp& op>
void AddFloatKernels(OpLibrary& lib, absl::string_view name) {
  lib.kernels.Add(name, "cpu", MakeConv<float, op>).template Type<float, half, bfloat16>("T");
  lib.kernels.Add(name, "cpu", MakeConv<double, op>).template Type<double>("T");
}

}  // namespace

void RegisterConvOps(OpLibrary& lib) {
  lib.schemas
      .Add("Conv2D(input: T, filter: T) -> output: T",
           "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; "
           "padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; "
           "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]")
      .Shape(Conv2DShape)
      .Cost(ConvCost);
  AddFloatKernels<kConv2D>(lib, "Conv2D");
  lib.kernels.Add("Conv2D", "cpu", MakeConv<int32_t, kConv2D>).Type<int32_t>("T");

  lib.schemas
      .Add("Conv3D(input: T, filter: T) -> output: T",
           "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {\"SAME\", \"VALID\"}; "
           "data_format: {\"NDHWC\", \"NCDHW\"} = \"NDHWC\"; dilations: list(int) = [1, 1, 1, 1, 1]")
      .Shape(Conv3DShape)
      .Cost(ConvCost);
  AddFloatKernels<kConv3D>(lib, "Conv3D");

  lib.schemas
      .Add("DepthwiseConv2dNative(input: T, filter: T) -> output: T",
           "T: {half, bfloat16, float, double}; strides: list(int); padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; "
           "explicit_paddings: list(int) = []; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; "
           "dilations: list(int) = [1, 1, 1, 1]")
      .Shape(DepthwiseConv2DShape)
      .Cost(DepthwiseConvCost);
  AddFloatKernels<kDepthwise>(lib, "DepthwiseConv2dNative");

  lib.schemas
      .Add("_FusedConv2D(input: T, filter: T, args: TArgs, host_args: num_host_args*float) -> output: T",
           "T: {half, bfloat16, float, double, int8, qint8}; TArgs: list(type) >= 1; num_args: int >= 0; "
           "num_host_args: int >= 0 = 0; strides: list(int); padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; "
           "explicit_paddings: list(int) = []; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"; "
           "filter_format: {\"HWIO\", \"OIHW\", \"OIHW_VECT_I\"} = \"HWIO\"; dilations: list(int) = [1, 1, 1, 1]; "
           "use_cudnn_on_gpu: bool = true; fused_ops: list(string) = []; epsilon: float = 0.0001; "
           "leakyrelu_alpha: float = 0.2")
      .Shape(Conv2DShape)
      .Cost(ConvCost);
  AddFloatKernels<kFusedConv2D>(lib, "_FusedConv2D");

  // Explicit padding is more than TensorFlow's op of this name has: fusing must not lose it.
  lib.schemas
      .Add("_FusedDepthwiseConv2dNative(input: T, filter: T, args: num_args*T) -> output: T",
           "T: {half, bfloat16, float, double}; num_args: int >= 0; strides: list(int); "
           "padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; explicit_paddings: list(int) = []; "
           "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; dilations: list(int) = [1, 1, 1, 1]; "
           "fused_ops: list(string) = []; epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2")
      .Shape(DepthwiseConv2DShape)
      .Cost(DepthwiseConvCost);
  AddFloatKernels<kFusedDepthwise>(lib, "_FusedDepthwiseConv2dNative");
}

}  // namespace thalweg
