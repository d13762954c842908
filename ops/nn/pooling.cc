// MaxPool, MaxPoolV2 and AvgPool.
//
// Kernels run over channels-last images, one output row per task, with the channels as the inner loop. As in TensorFlow
// a window of MaxPool starts from the lowest finite value of the type, so it never yields NaN or -inf; one that extends
// along channels starts from its first element.
#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/nn/layout.h"
#include "thalweg/ops/nn/nn_ops.h"
#include "thalweg/ops/nn/window.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

enum class PoolKind { kMax, kAverage };

struct PoolDim {
  int64_t in = 1, out = 1, window = 1, stride = 1, pad_before = 0;
};

struct PoolGeometry {
  int64_t batch = 0, channels = 0;
  int64_t channel_window = 1;  // above 1: windows extend along channels, and only there
  PoolDim y, x;
  Shape output;
};

// Windows along channels divide them without rest.
absl::Status FitChannelWindow(PoolKind kind, const WindowAttrs& window, int64_t channels) {
  if (window.channels.size == 1 && window.channels.stride == 1) return absl::OkStatus();
  if (kind == PoolKind::kAverage) return absl::UnimplementedError("average pooling over channels is not supported");
  if (window.dims[0].size != 1 || window.dims[1].size != 1) {
    return absl::UnimplementedError("pooling over channels and over rows or columns at once is not supported");
  }
  if (window.channels.size != window.channels.stride || channels % window.channels.size != 0) {
    return absl::UnimplementedError(
        absl::StrCat("pooling over channels needs a stride equal to the window and a divisor of the ", channels,
                     " channels; window and stride are ", window.channels.size, " and ", window.channels.stride));
  }
  return absl::OkStatus();
}

absl::StatusOr<PoolDim> FitPoolDim(const WindowAttrs& window, int i, int64_t in) {
  if (window.channels.size > 1) return PoolDim{in, in, 1, 1, 0};
  const WindowDim& dim = window.dims[i];
  THALWEG_ASSIGN_OR_RETURN(const WindowFit fit, FitWindow(in, dim.size, dim, window.padding));
  if (window.channels_first && fit.out == 0 && in > 0) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", dim.size, " does not fit into an input of ", in));
  }
  return PoolDim{in, fit.out, dim.size, dim.stride, fit.pad_before};
}

absl::StatusOr<PoolGeometry> FitPool(PoolKind kind, const WindowAttrs& window, const Shape& input) {
  if (input.rank() != window.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the input of a pool must have rank ", window.rank(), " but has shape ", input.ToString()));
  }
  PoolGeometry g;
  g.batch = input.dim(0);
  g.channels = input.dim(window.channel_dim());
  THALWEG_RETURN_IF_ERROR(FitChannelWindow(kind, window, g.channels));
  g.channel_window = window.channels.size;
  THALWEG_ASSIGN_OR_RETURN(g.y, FitPoolDim(window, 0, input.dim(window.spatial_dim(0))));
  THALWEG_ASSIGN_OR_RETURN(g.x, FitPoolDim(window, 1, input.dim(window.spatial_dim(1))));
  Dims out(window.rank());
  out[0] = g.batch;
  out[window.channel_dim()] = g.channels / g.channel_window;
  out[window.spatial_dim(0)] = g.y.out;
  out[window.spatial_dim(1)] = g.x.out;
  THALWEG_ASSIGN_OR_RETURN(g.output, Shape::Make(out));
  return g;
}

template <typename T>
THALWEG_CLONES void MaxInto(const T* in, int64_t n, T* acc) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) acc[c] = in[c] > acc[c] ? in[c] : acc[c];
}
template <typename T>
THALWEG_CLONES void SumInto(const T* in, int64_t n, T* acc) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) acc[c] += in[c];
}
template <typename T>
THALWEG_CLONES void DivideAll(T divisor, int64_t n, T* acc) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) acc[c] /= divisor;
}

// The part of a window that lies inside the input.
struct Range {
  int64_t begin, end;
};
Range WindowRange(const PoolDim& d, int64_t out) {
  const int64_t start = out * d.stride - d.pad_before;
  return {std::max<int64_t>(start, 0), std::min(start + d.window, d.in)};
}

// What one kind of pool does with the pixels of a window.
template <typename T>
struct MaxReducer {
  static void Add(const T* pixel, int64_t channels, T* acc) { MaxInto(pixel, channels, acc); }
  static void Finish(int64_t count, int64_t channels, T* acc) {}
};
template <typename T>
struct AverageReducer {
  static void Add(const T* pixel, int64_t channels, T* acc) { SumInto(pixel, channels, acc); }
  static void Finish(int64_t count, int64_t channels, T* acc) { DivideAll(static_cast<T>(count), channels, acc); }
};

template <typename T, template <typename> class Reducer>
void PoolRow(const PoolGeometry& g, const T* image, int64_t row, T initial, T* out) {
  const Range ys = WindowRange(g.y, row);
  for (int64_t ox = 0; ox < g.x.out; ++ox, out += g.channels) {
    const Range xs = WindowRange(g.x, ox);
    std::fill_n(out, g.channels, initial);
    for (int64_t y = ys.begin; y < ys.end; ++y) {
      for (int64_t x = xs.begin; x < xs.end; ++x)
        Reducer<T>::Add(image + (y * g.x.in + x) * g.channels, g.channels, out);
    }
    Reducer<T>::Finish((ys.end - ys.begin) * (xs.end - xs.begin), g.channels, out);
  }
}

template <typename T>
void MaxOverChannels(const T* in, int64_t windows, int64_t window, T* out) {
  for (int64_t i = 0; i < windows; ++i, in += window) {
    T largest = in[0];
    for (int64_t c = 1; c < window; ++c) largest = in[c] > largest ? in[c] : largest;
    out[i] = largest;
  }
}

// The lowest finite value of a storage type, in its computing type T.
template <typename T>
T LowestOf(DType storage) {
  if (storage == DType::kFloat16) return static_cast<T>(-65504);
  if (storage == DType::kBFloat16) return static_cast<T>(-0x1.fep127f);
  return std::numeric_limits<T>::lowest();
}

// T is the computing type.
template <typename T, PoolKind kKind>
class PoolKernel final : public Kernel {
 public:
  // Window and strides from attributes, or (MaxPoolV2) from inputs 1 and 2.
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    auto kernel = std::make_unique<PoolKernel>();
    if (init.node().input_types().size() == 1) {
      THALWEG_ASSIGN_OR_RETURN(const std::vector<int64_t> ksize, init.Attr<std::vector<int64_t>>("ksize"));
      THALWEG_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, init.Attr<std::vector<int64_t>>("strides"));
      THALWEG_ASSIGN_OR_RETURN(kernel->window_, ParsePoolAttrs(init.node().node_attrs(), ksize, strides));
      THALWEG_RETURN_IF_ERROR(CompleteWindow(&kernel->window_));
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const WindowAttrs window, Window(ctx));
    THALWEG_ASSIGN_OR_RETURN(const PoolGeometry geometry, FitPool(kKind, window, ctx.input(0).shape()));
    if (!window.channels_first) {
      THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, geometry.output));
      THALWEG_RETURN_IF_ERROR(Pool(ctx, window, geometry, static_cast<T*>(output.data())));
      output.Finish(ctx);
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor computed, ctx.AllocateTemp(DTypeOf<T>::value, ChannelsLastShape(geometry.output)));
    THALWEG_RETURN_IF_ERROR(Pool(ctx, window, geometry, static_cast<T*>(computed.mutable_raw())));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, geometry.output));
    StoreChannelsFirst(ctx, computed, output.mutable_tensor());
    output.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  // The stride of a window of one channel does not matter to TensorFlow, not even if it is negative.
  static absl::Status CompleteWindow(WindowAttrs* window) {
    if (window->channels.size == 1) window->channels.stride = 1;
    return CheckPoolWindow(*window);
  }

  absl::StatusOr<WindowAttrs> Window(KernelContext& ctx) const {
    if (ctx.num_inputs() == 1) return window_;
    Dims lists[2];
    for (int i = 0; i < 2; ++i) {
      const Tensor& t = ctx.input(i + 1);
      if (t.num_elements() != 4) {  // the rank does not matter
        return absl::InvalidArgumentError(
            absl::StrCat(i == 0 ? "ksize" : "strides", " must have 4 elements but has shape ", t.shape().ToString()));
      }
      lists[i].assign(t.flat<int32_t>().begin(), t.flat<int32_t>().end());
    }
    THALWEG_ASSIGN_OR_RETURN(WindowAttrs window, ParsePoolAttrs(ctx.node().node_attrs(), lists[0], lists[1]));
    THALWEG_RETURN_IF_ERROR(CompleteWindow(&window));
    return window;
  }

  absl::Status Pool(KernelContext& ctx, const WindowAttrs& window, const PoolGeometry& g, T* out) const {
    if (g.output.num_elements() == 0) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(Tensor in, ToComputing(ctx, ctx.input(0)));
    if (window.channels_first) {
      THALWEG_ASSIGN_OR_RETURN(in, ToChannelsLast(ctx, in));
    }
    const T* pixels = static_cast<const T*>(in.raw());
    if (g.channel_window > 1) {
      const int64_t length = g.channel_window;
      ctx.ParallelFor(g.output.num_elements(), 0.5 * static_cast<double>(length), [&](int64_t begin, int64_t end) {
        MaxOverChannels(pixels + begin * length, end - begin, length, out + begin);
      });
      return absl::OkStatus();
    }
    const int64_t image = g.y.in * g.x.in * g.channels, row = g.x.out * g.channels;
    const T initial = kKind == PoolKind::kMax ? LowestOf<T>(ctx.input_dtype(0)) : T(0);
    const double nanos =
        0.1 * static_cast<double>(row) * static_cast<double>(g.y.window) * static_cast<double>(g.x.window);
    ctx.ParallelFor(g.batch * g.y.out, nanos, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && !ctx.step().cancelled(); ++i) {
        const T* source = pixels + i / g.y.out * image;
        if constexpr (kKind == PoolKind::kMax) PoolRow<T, MaxReducer>(g, source, i % g.y.out, initial, out + i * row);
        else PoolRow<T, AverageReducer>(g, source, i % g.y.out, initial, out + i * row);
      }
    });
    return absl::OkStatus();
  }

  WindowAttrs window_;
};

absl::Status PoolShape(ShapeContext& c, PoolKind kind, absl::Span<const int64_t> ksize,
                       absl::Span<const int64_t> strides) {
  THALWEG_ASSIGN_OR_RETURN(const WindowAttrs window, ParsePoolAttrs(c.attrs(), ksize, strides));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, window.rank()));
  const PartialShape input = c.input(0).has_rank() ? c.input(0) : PartialShape::UnknownOfRank(window.rank());
  PartialShape out = input;
  for (int i = 0; i < window.spatial; ++i) {
    const int d = window.spatial_dim(i);
    const WindowDim& dim = window.dims[i];
    THALWEG_ASSIGN_OR_RETURN(const int64_t size,
                             WindowedDim(input.dim(d), dim.size < 1 ? kUnknownDim : dim.size, dim, window.padding));
    out.set_dim(d, size);
  }
  if (kind == PoolKind::kMax && window.channels.stride < 1) {
    return absl::InvalidArgumentError(absl::StrCat("the stride along channels is ", window.channels.stride, "; it must be > 0"));
  }
  if (kind == PoolKind::kMax && window.channels.size >= 1) {
    // Even a window of one channel must fit.
    const int c_dim = window.channel_dim();
    THALWEG_ASSIGN_OR_RETURN(const int64_t channels,
                             WindowedDim(input.dim(c_dim), window.channels.size, window.channels, window.padding));
    out.set_dim(c_dim, channels);
  }
  // Windows along channels leave rows and columns as they are, whatever the strides say; averages along them never run.
  const bool along_channels = kind == PoolKind::kMax && window.channels.size > 1;
  for (int d = 1; d < window.rank() && along_channels; ++d) {
    if (d != window.channel_dim()) out.set_dim(d, input.dim(d));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// TensorFlow's plain kernels refuse images with channels first; its layout rewrite, which makes them run, needs to know
// that they are images. So do we (L25).
template <PoolKind kKind>
absl::Status PoolShapeFromAttrs(ShapeContext& c) {
  if (!c.input(0).has_rank() && c.attrs().GetOr<std::string>("data_format", "NHWC") == "NCHW") {
    return absl::InvalidArgumentError(
        "a pool with data_format NCHW needs an input of known rank; state the shape of the placeholder it comes from");
  }
  THALWEG_ASSIGN_OR_RETURN(const std::vector<int64_t> ksize, c.attrs().Get<std::vector<int64_t>>("ksize"));
  THALWEG_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, c.attrs().Get<std::vector<int64_t>>("strides"));
  return PoolShape(c, kKind, ksize, strides);
}

absl::Status PoolShapeFromInputs(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 4));
  for (int i = 1; i <= 2; ++i) {
    THALWEG_RETURN_IF_ERROR(c.RequireRank(i, 1));
    if (!c.input(i).has_rank() || !IsKnownDim(c.input(i).dim(0)) || c.input(i).dim(0) == 4) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("window sizes and strides must be 4 numbers; input ", i, " has shape ", c.input(i).ToString()));
  }
  const std::optional<std::vector<int64_t>> ksize = c.input_ints(1), strides = c.input_ints(2);
  if (ksize && strides) return PoolShape(c, PoolKind::kMax, *ksize, *strides);
  c.set_output(0, PartialShape::UnknownOfRank(4));
  return absl::OkStatus();
}

// One operation per element of every window.
NodeCost PoolCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  double window = 1;
  for (int64_t k : c.attrs().GetOr<std::vector<int64_t>>("ksize", {2, 2}))
    window *= static_cast<double>(std::max<int64_t>(k, 1));
  cost.flops = window * c.OutputElements(0);
  return cost;
}

template <PoolKind kKind, typename T, typename... Storage>
void AddPool(OpLibrary& lib, absl::string_view op) {
  KernelDef& def = lib.kernels.Add(op, "cpu", MakeFallibleKernel<PoolKernel<T, kKind>>).template Type<Storage...>("T");
  if (op == "MaxPoolV2") def.HostMemory("ksize").HostMemory("strides");
}

void AddMaxPools(OpLibrary& lib, absl::string_view op) {
  AddPool<PoolKind::kMax, float, float, half, bfloat16>(lib, op);
  AddPool<PoolKind::kMax, double, double>(lib, op);
  AddPool<PoolKind::kMax, int8_t, int8_t>(lib, op);
  AddPool<PoolKind::kMax, uint8_t, uint8_t>(lib, op);
  AddPool<PoolKind::kMax, int16_t, int16_t>(lib, op);
  AddPool<PoolKind::kMax, uint16_t, uint16_t>(lib, op);
  AddPool<PoolKind::kMax, int32_t, int32_t>(lib, op);
  AddPool<PoolKind::kMax, int64_t, int64_t>(lib, op);
}

}  // namespace

void RegisterPoolOps(OpLibrary& lib) {
  lib.schemas
      .Add("MaxPool(input: T) -> output: T",
           "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; "
           "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {\"SAME\", \"VALID\", \"EXPLICIT\"}; "
           "explicit_paddings: list(int) = []; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"")
      .Shape(PoolShapeFromAttrs<PoolKind::kMax>)
      .Cost(PoolCost);
  AddMaxPools(lib, "MaxPool");

  lib.schemas
      .Add("MaxPoolV2(input: T, ksize: int32, strides: int32) -> output: T",
           "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = float; "
           "padding: {\"SAME\", \"VALID\"}; data_format: {\"NHWC\", \"NCHW\", \"NCHW_VECT_C\"} = \"NHWC\"")
      .Shape(PoolShapeFromInputs)
      .Cost(PoolCost);
  AddMaxPools(lib, "MaxPoolV2");

  lib.schemas
      .Add("AvgPool(value: T) -> output: T",
           "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {\"SAME\", \"VALID\"}; "
           "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; T: {half, bfloat16, float, double}")
      .Shape(PoolShapeFromAttrs<PoolKind::kAverage>)
      .Cost(PoolCost);
  AddPool<PoolKind::kAverage, float, float, half, bfloat16>(lib, "AvgPool");
  AddPool<PoolKind::kAverage, double, double>(lib, "AvgPool");
}

}  // namespace thalweg
