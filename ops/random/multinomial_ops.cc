// Multinomial and StatelessMultinomial: classes drawn with probabilities given as logits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/random_distributions.h"
#include "thalweg/ops/random/random_ops.h"

namespace thalweg::random {
namespace {

// The running sums of a row's weights, exp(logit - largest); logits that are not finite weigh nothing.
template <typename T>
double FillCumulative(const T* logits, absl::Span<double> sums) {
  const auto value = [&](size_t k) { return static_cast<double>(static_cast<ComputingT<T>>(logits[k])); };
  double largest = std::numeric_limits<double>::lowest();
  for (size_t k = 0; k < sums.size(); ++k) {
    if (std::isfinite(value(k))) largest = std::max(largest, value(k));
  }
  double total = 0;
  for (size_t k = 0; k < sums.size(); ++k) {
    if (std::isfinite(value(k))) total += std::exp(value(k) - largest);
    sums[k] = total;
  }
  return total;
}

template <typename Out>
void DrawRow(PhiloxWords& words, absl::Span<const double> sums, double total, absl::Span<Out> out) {
  for (Out& drawn : out) {
    const uint32_t high = words(), low = words();
    const double target = UnitDouble(high, low) * total;
    drawn = static_cast<Out>(std::upper_bound(sums.begin(), sums.end(), target) - sums.begin());
  }
}

struct StreamSource {
  explicit StreamSource(const KernelInit& init) : stream(init.node().node_attrs()) {}
  absl::StatusOr<Philox> Take(KernelContext&, uint64_t blocks) { return stream.Reserve(blocks); }
  RandomStream stream;
};
struct SeedSource {
  explicit SeedSource(const KernelInit&) {}
  absl::StatusOr<Philox> Take(KernelContext& ctx, uint64_t) { return PhiloxFromSeed(ctx.input(2)); }
};

template <typename Source, typename T>
class MultinomialKernel final : public Kernel {
 public:
  explicit MultinomialKernel(const KernelInit& init) : source_(init) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("logits must be a matrix, but its shape is ", logits.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const int64_t samples, IntScalarArg(ctx.input(1), "num_samples"));
    if (samples < 0) return absl::InvalidArgumentError(absl::StrCat("num_samples is ", samples, "; it must not be negative"));
    if (logits.dim(1) == 0) return absl::InvalidArgumentError("there are no classes to draw from: logits has no columns");
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({logits.dim(0), samples}));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    // As TensorFlow sets aside: two words for each sample, samples rounded up to whole blocks.
    const uint64_t reserved = static_cast<uint64_t>(samples + 3) / 4 * 4 * 2 * static_cast<uint64_t>(logits.dim(0));
    THALWEG_ASSIGN_OR_RETURN(const Philox philox, source_.Take(ctx, reserved * kBlocksPerOutput));
    if (shape.num_elements() == 0) return absl::OkStatus();
    if (out->dtype() == DType::kInt32) Draw(philox, logits, samples, out->mutable_flat<int32_t>());
    else Draw(philox, logits, samples, out->mutable_flat<int64_t>());
    return absl::OkStatus();
  }

 private:
  // One stream for all rows, as TensorFlow draws on one thread.
  template <typename Out>
  static void Draw(const Philox& philox, const Tensor& logits, int64_t samples, absl::Span<Out> out) {
    const int64_t classes = logits.dim(1);
    PhiloxWords words(philox);
    std::vector<double> sums(classes);
    for (int64_t row = 0; row < logits.dim(0); ++row) {
      const double total = FillCumulative(logits.flat<T>().data() + row * classes, absl::MakeSpan(sums));
      DrawRow(words, sums, total, out.subspan(row * samples, samples));
    }
  }

  Source source_;
};

absl::Status MultinomialShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  const std::optional<int64_t> samples = c.input_int(1);
  const int64_t rows = c.input(0).has_rank() ? c.input(0).dim(0) : kUnknownDim;
  c.set_output(0, PartialShape::OfDims({rows, samples && *samples >= 0 ? *samples : kUnknownDim}));
  return absl::OkStatus();
}

template <typename Source, typename... Ts>
void AddKernels(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeKernel<MultinomialKernel<Source, Ts>>).template Type<Ts>("T").HostMemory("num_samples"), ...);
}

}  // namespace

void RegisterMultinomialOps(OpLibrary& lib) {
  lib.schemas.Add("Multinomial(logits: T, num_samples: int32) -> output: output_dtype",
                  "seed: int = 0; seed2: int = 0; T: realnumbertype; output_dtype: {int32, int64} = int64")
      .Stateful().Shape(MultinomialShape).Cost(ElementwiseCost<20>);
  AddKernels<StreamSource>(lib, "Multinomial", TypeList<half, bfloat16, float, double>());
  lib.schemas.Add("StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed) -> output: output_dtype",
                  "T: realnumbertype; Tseed: {int32, int64} = int64; output_dtype: {int32, int64} = int64")
      .Shape(MultinomialShape).Cost(ElementwiseCost<20>);
  AddKernels<SeedSource>(lib, "StatelessMultinomial", TypeList<half, bfloat16, float, double>());
}

}  // namespace thalweg::random
