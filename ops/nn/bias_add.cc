// BiasAdd: adds a vector along the channels.
#include <complex>
#include <memory>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/nn/nn_ops.h"

namespace thalweg {
namespace {

// out[c] = in[c] + bias[c]; `out` may be `in`. Integers wrap.
template <typename T>
THALWEG_CLONES void AddRow(const T* in, const T* bias, int64_t n, T* out) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) out[c] = in[c] + bias[c];
}
template <typename T>
THALWEG_CLONES void AddOne(const T* in, T bias, int64_t n, T* out) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) out[c] = in[c] + bias;
}

// Elements that are added as another type: unsigned for signed.
template <typename T>
using AddedAs = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;

// The tensor as [outer, channels, inner]; inner is 1 where channels are innermost.
struct BiasView {
  int64_t outer = 0, channels = 0, inner = 0;
};

absl::StatusOr<BiasView> ViewWithBias(bool channels_first, const Shape& value, const Shape& bias) {
  if (value.rank() < 2)
    return absl::InvalidArgumentError(absl::StrCat("value must have at least rank 2 but has shape ", value.ToString()));
  const int channel_dim = channels_first ? 1 : value.rank() - 1;
  if (bias.rank() != 1 || bias.dim(0) != value.dim(channel_dim)) {
    return absl::InvalidArgumentError(absl::StrCat("bias must be a vector of ", value.dim(channel_dim),
                                                   " elements, the channels of value of shape ", value.ToString(),
                                                   ", but has shape ", bias.ToString()));
  }
  return BiasView{value.NumElements(0, channel_dim), value.dim(channel_dim),
                  value.NumElements(channel_dim + 1, value.rank())};
}

template <typename T>
void AddBias(KernelContext& ctx, const BiasView& view, const T* in, const T* bias, T* out) {
  if (view.inner == 1) {
    ctx.ParallelFor(view.outer, 0.3 * static_cast<double>(view.channels), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        AddRow(in + row * view.channels, bias, view.channels, out + row * view.channels);
    });
  } else {
    ctx.ParallelFor(view.outer * view.channels, 0.3 * static_cast<double>(view.inner), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        AddOne(in + row * view.inner, bias[row % view.channels], view.inner, out + row * view.inner);
    });
  }
}

// T is the computing type.
template <typename T>
class BiasAddKernel final : public Kernel {
 public:
  explicit BiasAddKernel(const KernelInit& init)
      : channels_first_(init.node().node_attrs().GetOr<std::string>("data_format", "NHWC") == "NCHW") {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& value = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const BiasView view, ViewWithBias(channels_first_, value.shape(), ctx.input(1).shape()));
    if (value.dtype() == DTypeOf<T>::value) {
      THALWEG_ASSIGN_OR_RETURN(Tensor * output, ctx.ForwardOrAllocateOutput({0}, 0, value.shape()));
      Add(ctx, view, value, ctx.input(1), output->mutable_raw());
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(const Tensor computing, ToComputing(ctx, value));
    THALWEG_ASSIGN_OR_RETURN(const Tensor bias, ToComputing(ctx, ctx.input(1)));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, value.shape()));
    Add(ctx, view, computing, bias, output.data());
    output.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  void Add(KernelContext& ctx, const BiasView& view, const Tensor& value, const Tensor& bias, void* out) const {
    if (value.num_elements() == 0) return;
    using Added = AddedAs<T>;
    AddBias(ctx, view, static_cast<const Added*>(value.raw()), static_cast<const Added*>(bias.raw()),
            static_cast<Added*>(out));
  }

  const bool channels_first_;
};

absl::Status BiasAddShape(ShapeContext& c) {
  const bool channels_first = c.attrs().GetOr<std::string>("data_format", "NHWC") == "NCHW";
  // A matrix has its channels last; the kernel lets a channels-first one of unknown shape pass, as TensorFlow's does.
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, channels_first ? 3 : 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  PartialShape out = c.input(0);
  if (out.has_rank() && c.input(1).has_rank()) {
    const int channel_dim = channels_first ? 1 : out.rank() - 1;
    const absl::StatusOr<int64_t> channels = ShapeContext::MergeDim(out.dim(channel_dim), c.input(1).dim(0));
    if (!channels.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("bias of shape ", c.input(1).ToString(),
                                                     " does not fit the channels of value of shape ", out.ToString()));
    }
    out.set_dim(channel_dim, *channels);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

template <typename... Ts>
void AddKernels(OpLibrary& lib) {
  (lib.kernels.Add("BiasAdd", "cpu", MakeKernel<BiasAddKernel<Ts>>).template Type<Ts>("T"), ...);
}

}  // namespace

void RegisterBiasOps(OpLibrary& lib) {
  lib.schemas
      .Add("BiasAdd(value: T, bias: T) -> output: T", "T: numbertype; data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"")
      .Shape(BiasAddShape)
      .Cost(ElementwiseCost<1>);
  lib.kernels.Add("BiasAdd", "cpu", MakeKernel<BiasAddKernel<float>>).Type<float, half, bfloat16>("T");
  AddKernels<double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, std::complex<float>,
             std::complex<double>>(lib);
}

}  // namespace thalweg
