// LRN: local response normalisation across channels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/nn/nn_ops.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

struct LrnParameters {
  int64_t radius = 5;
  float bias = 1, alpha = 1, beta = 0.5;
};

// sum[c] = the sum of in^2 over channels [c - radius, c + radius]. Each sum is built anew: a running sum would carry
// the rounding of large neighbours along.
THALWEG_CLONES void SumSquares(const float* in, int64_t channels, int64_t radius, float* sum) {
  std::fill_n(sum, channels, 0.0f);
  for (int64_t shift = -radius; shift <= radius; ++shift) {
    const int64_t begin = std::max<int64_t>(0, -shift), end = std::min(channels, channels - shift);
#pragma GCC ivdep
    for (int64_t c = begin; c < end; ++c) sum[c] += in[c + shift] * in[c + shift];
  }
}

THALWEG_CLONES void Divide(const float* in, const float* sum, const LrnParameters& p, int64_t channels, float* out) {
  const float bias = p.bias, alpha = p.alpha, beta = p.beta;
#pragma GCC ivdep
  for (int64_t c = 0; c < channels; ++c)
    out[c] = in[c] * vector_math::Exp(-beta * vector_math::Log(bias + alpha * sum[c]));
}

class LrnKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    const NodeAttrs attrs = init.node().node_attrs();
    LrnParameters p;
    p.radius = attrs.GetOr<int64_t>("depth_radius", p.radius);
    p.bias = attrs.GetOr<float>("bias", p.bias);
    p.alpha = attrs.GetOr<float>("alpha", p.alpha);
    p.beta = attrs.GetOr<float>("beta", p.beta);
    if (p.radius < 0 || p.radius > std::numeric_limits<int32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("depth_radius must be between 0 and 2^31 - 1 but is ", p.radius));
    }
    return std::unique_ptr<Kernel>(std::make_unique<LrnKernel>(p));
  }
  explicit LrnKernel(LrnParameters parameters) : parameters_(parameters) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& input = ctx.input(0);
    if (input.rank() != 4)
      return absl::InvalidArgumentError(
          absl::StrCat("the input must have rank 4 but has shape ", input.shape().ToString()));
    THALWEG_ASSIGN_OR_RETURN(const Tensor in, ToComputing(ctx, input));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, input.shape()));
    const int64_t channels = input.dim(3);
    if (input.num_elements() > 0) {
      const float* x = static_cast<const float*>(in.raw());
      float* y = static_cast<float*>(output.data());
      const int64_t radius = std::min(parameters_.radius, channels);
      const double nanos = (2.0 + 0.1 * static_cast<double>(radius)) * static_cast<double>(channels);
      ctx.ParallelFor(input.num_elements() / channels, nanos, [&](int64_t begin, int64_t end) {
        std::vector<float> sum(channels);
        for (int64_t pixel = begin; pixel < end && !ctx.step().cancelled(); ++pixel) {
          SumSquares(x + pixel * channels, channels, radius, sum.data());
          Divide(x + pixel * channels, sum.data(), parameters_, channels, y + pixel * channels);
        }
      });
    }
    output.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  const LrnParameters parameters_;
};

absl::Status LrnShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 4));
  c.set_output(0, c.input(0).has_rank() ? c.input(0) : PartialShape::UnknownOfRank(4));
  return absl::OkStatus();
}

NodeCost LrnCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  cost.flops = c.OutputElements(0) * (20 + 4 * static_cast<double>(c.attrs().GetOr<int64_t>("depth_radius", 5)));
  return cost;
}

}  // namespace

void RegisterLrnOps(OpLibrary& lib) {
  lib.schemas
      .Add("LRN(input: T) -> output: T",
           "depth_radius: int = 5; bias: float = 1.0; alpha: float = 1.0; beta: float = 0.5; "
           "T: {half, bfloat16, float} = float")
      .Shape(LrnShape)
      .Cost(LrnCost);
  lib.kernels.Add("LRN", "cpu", MakeFallibleKernel<LrnKernel>).Type<float, half, bfloat16>("T");
}

}  // namespace thalweg
