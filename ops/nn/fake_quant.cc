// FakeQuantWithMinMaxArgs, -Vars, -VarsPerChannel and their gradients: floats rounded to the steps of a quantized range, as
// training for quantization wants them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/nn/nn_ops.h"

namespace thalweg {
namespace {

struct Quantization {
  int64_t bits = 8;
  bool narrow = false;

  float lowest() const { return narrow ? 1.0f : 0.0f; }
  float highest() const { return static_cast<float>((int64_t{1} << bits) - 1); }
};

absl::StatusOr<Quantization> ReadQuantization(const NodeAttrs& attrs) {
  Quantization q;
  THALWEG_ASSIGN_OR_RETURN(q.bits, attrs.Get<int64_t>("num_bits"));
  THALWEG_ASSIGN_OR_RETURN(q.narrow, attrs.Get<bool>("narrow_range"));
  if (q.bits >= 2 && q.bits <= 16) return q;
  return absl::InvalidArgumentError(absl::StrCat("num_bits is ", q.bits, "; it must be in [2,16]"));
}

// A range moved so that 0 is one of its steps.
struct NudgedRange {
  float min = 0, max = 0, scale = 0;
  bool zero = false;  // the range is [0, 0]: everything becomes 0
};

NudgedRange Nudge(float min, float max, const Quantization& q) {
  NudgedRange range;
  range.zero = min == 0.0f && max == 0.0f;
  range.scale = (max - min) / (q.highest() - q.lowest());
  const float zero_point = q.lowest() - min / range.scale;
  const float nudged = zero_point < q.lowest() ? q.lowest() : zero_point > q.highest() ? q.highest() : std::round(zero_point);
  range.min = (q.lowest() - nudged) * range.scale;
  range.max = (q.highest() - nudged) * range.scale;
  return range;
}

THALWEG_INLINE float Quantized(float x, const NudgedRange& range, float inverse) {
  const float below = x < range.max ? x : range.max;
  const float clamped = below > range.min ? below : range.min;
  return std::floor((clamped - range.min) * inverse + 0.5f) * range.scale + range.min;
}

// Elements in[k * stride], all with one range.
void QuantizeAll(const float* in, int64_t stride, int64_t n, const NudgedRange& range, float* out) {
  const float inverse = 1.0f / range.scale;
  for (int64_t k = 0; k < n; ++k) out[k * stride] = range.zero ? 0.0f : Quantized(in[k * stride], range, inverse);
}

// What becomes of the gradient of elements with one range.
struct RangeGradient {
  double min = 0, max = 0;
};
void PassGradient(const float* gradient, const float* in, int64_t stride, int64_t n, const NudgedRange& range, float* out,
                  RangeGradient* sums) {
  for (int64_t k = 0; k < n; ++k) {
    const float x = in[k * stride], g = gradient[k * stride];
    const bool inside = range.zero || (x >= range.min && x <= range.max);
    out[k * stride] = inside ? g : 0.0f;
    if (!range.zero && x < range.min) sums->min += g;
    if (!range.zero && x > range.max) sums->max += g;
  }
}

// Where the range comes from: attributes, two scalars, or two vectors with an element per channel (the last dimension).
enum class RangeSource { kAttributes, kScalars, kChannels };

// The bounds of each channel, one channel unless kChannels.
struct Bounds {
  absl::Span<const float> min, max;
  int64_t channels() const { return static_cast<int64_t>(min.size()); }
};

template <RangeSource source, bool kGradient>
class FakeQuantKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    auto kernel = std::make_unique<FakeQuantKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->quantization_, ReadQuantization(attrs));
    if constexpr (source == RangeSource::kAttributes) {
      THALWEG_ASSIGN_OR_RETURN(kernel->min_, attrs.Get<float>("min"));
      THALWEG_ASSIGN_OR_RETURN(kernel->max_, attrs.Get<float>("max"));
      if (!(kernel->min_ < kernel->max_)) {
        return absl::InvalidArgumentError(absl::StrCat("min must be less than max, but they are ", kernel->min_, " and ", kernel->max_));
      }
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(kInput).shape();
    if (kGradient && ctx.input(0).shape() != shape) {
      return absl::InvalidArgumentError(absl::StrCat("gradients and inputs must have one shape, but have ",
                                                     ctx.input(0).shape().ToString(), " and ", shape.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Bounds bounds, ReadBounds(ctx, shape));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const float* in = ctx.input(kInput).template flat<float>().data();
    float* result = out->mutable_flat<float>().data();
    const int64_t channels = bounds.channels(), n = channels == 0 ? 0 : shape.num_elements() / channels;
    std::vector<RangeGradient> sums(channels);
    ctx.ParallelFor(channels, 2.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        const NudgedRange range = Nudge(bounds.min[c], bounds.max[c], quantization_);
        if constexpr (kGradient) {
          PassGradient(ctx.input(0).flat<float>().data() + c, in + c, channels, n, range, result + c, &sums[c]);
        } else {
          QuantizeAll(in + c, channels, n, range, result + c);
        }
      }
    });
    if constexpr (kGradient && source != RangeSource::kAttributes) {
      THALWEG_RETURN_IF_ERROR(EmitSums(ctx, sums));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int kInput = kGradient ? 1 : 0;

  absl::StatusOr<Bounds> ReadBounds(const KernelContext& ctx, const Shape& shape) const {
    if constexpr (source == RangeSource::kAttributes) {
      return Bounds{absl::MakeConstSpan(&min_, 1), absl::MakeConstSpan(&max_, 1)};
    } else {
      const Tensor& min = ctx.input(kInput + 1);
      const Tensor& max = ctx.input(kInput + 2);
      if (source == RangeSource::kChannels && shape.rank() == 0) {
        return absl::InvalidArgumentError("inputs must have channels, but they are a scalar");
      }
      const Shape expected = source == RangeSource::kScalars ? Shape() : Shape::Of({shape.dim(shape.rank() - 1)});
      if (min.shape() != expected || max.shape() != expected) {
        return absl::InvalidArgumentError(absl::StrCat("min and max must have shape ", expected.ToString(), ", but have ",
                                                       min.shape().ToString(), " and ", max.shape().ToString()));
      }
      return Bounds{min.flat<float>(), max.flat<float>()};
    }
  }

  static absl::Status EmitSums(KernelContext& ctx, const std::vector<RangeGradient>& sums) {
    const Shape shape = ctx.input(kInput + 1).shape();
    THALWEG_ASSIGN_OR_RETURN(Tensor * min, ctx.AllocateOutput(1, shape));
    THALWEG_ASSIGN_OR_RETURN(Tensor * max, ctx.AllocateOutput(2, shape));
    for (size_t c = 0; c < sums.size(); ++c) {
      min->mutable_flat<float>()[c] = static_cast<float>(sums[c].min);
      max->mutable_flat<float>()[c] = static_cast<float>(sums[c].max);
    }
    return absl::OkStatus();
  }

  Quantization quantization_;
  float min_ = 0, max_ = 0;
};

absl::Status FakeQuantGradientShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(PartialShape both, ShapeContext::Merge(c.input(0), c.input(1)));
  c.set_output(0, std::move(both));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, c.input(2));
  return absl::OkStatus();
}

template <RangeSource source>
void RegisterFakeQuant(OpLibrary& lib, absl::string_view op, absl::string_view range, absl::string_view attrs, absl::string_view results) {
  lib.schemas.Add(absl::StrCat(op, "(inputs: float", range, ") -> outputs: float"), attrs).Shape(UnchangedShape).Cost(ElementwiseCost<6>);
  lib.kernels.Add(op, "cpu", MakeFallibleKernel<FakeQuantKernel<source, false>>);
  const std::string gradient = absl::StrCat(op, "Gradient");
  lib.schemas.Add(absl::StrCat(gradient, "(gradients: float, inputs: float", range, ") -> ", results), attrs)
      .Shape(FakeQuantGradientShape)
      .Cost(ElementwiseCost<6>);
  lib.kernels.Add(gradient, "cpu", MakeFallibleKernel<FakeQuantKernel<source, true>>);
}

}  // namespace

void RegisterFakeQuantOps(OpLibrary& lib) {
  constexpr char kQuantization[] = "num_bits: int = 8; narrow_range: bool = false";
  constexpr char kSums[] = "(backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float)";
  RegisterFakeQuant<RangeSource::kAttributes>(lib, "FakeQuantWithMinMaxArgs", "",
                                              absl::StrCat("min: float = -6.0; max: float = 6.0; ", kQuantization), "backprops: float");
  RegisterFakeQuant<RangeSource::kScalars>(lib, "FakeQuantWithMinMaxVars", ", min: float, max: float", kQuantization, kSums);
  RegisterFakeQuant<RangeSource::kChannels>(lib, "FakeQuantWithMinMaxVarsPerChannel", ", min: float, max: float", kQuantization, kSums);
}

}  // namespace thalweg
