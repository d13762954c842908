// FusedBatchNorm in its three versions: normalisation by given statistics (inference) or by those of the batch
// (training).
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/epilogue.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/nn/layout.h"
#include "thalweg/ops/nn/nn_ops.h"

namespace thalweg {
namespace {

constexpr int kNumStatistics = 4;  // scale, offset, mean, variance: inputs 1 to 4, all float
constexpr const char* kInputNames[] = {"x", "scale", "offset", "mean", "variance"};

// sum[c] += in[c], and sum[c] += (in[c] - mean[c])^2.
THALWEG_CLONES void AddRowTo(const float* in, int64_t n, double* sum) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) sum[c] += in[c];
}
THALWEG_CLONES void AddSquaresTo(const float* in, const float* mean, int64_t n, double* sum) {
#pragma GCC ivdep
  for (int64_t c = 0; c < n; ++c) {
    const double d = static_cast<double>(in[c]) - static_cast<double>(mean[c]);
    sum[c] += d * d;
  }
}

// Mean and (biased) variance of each channel, in two passes. Each channel is summed in the order of rows by one thread.
struct Moments {
  std::vector<float> mean, variance;
};

template <typename AddRow>
std::vector<float> AverageRows(KernelContext& ctx, int64_t rows, int64_t channels, AddRow add) {
  std::vector<float> average(channels);
  constexpr int64_t kBlock = 16;
  const int64_t blocks = (channels + kBlock - 1) / kBlock;
  ctx.ParallelFor(blocks, 0.5 * kBlock * static_cast<double>(rows), [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kBlock, n = std::min(end * kBlock, channels) - first;
    std::vector<double> sum(n, 0.0);
    for (int64_t r = 0; r < rows; ++r) add(r, first, n, sum.data());
    for (int64_t c = 0; c < n; ++c) average[first + c] = static_cast<float>(sum[c] / static_cast<double>(rows));
  });
  return average;
}

Moments ComputeMoments(KernelContext& ctx, const float* x, int64_t rows, int64_t channels) {
  Moments m;
  m.mean = AverageRows(ctx, rows, channels, [&](int64_t r, int64_t first, int64_t n, double* sum) {
    AddRowTo(x + r * channels + first, n, sum);
  });
  m.variance = AverageRows(ctx, rows, channels, [&](int64_t r, int64_t first, int64_t n, double* sum) {
    AddSquaresTo(x + r * channels + first, m.mean.data() + first, n, sum);
  });
  return m;
}

class FusedBatchNormKernel final : public Kernel {
 public:
  explicit FusedBatchNormKernel(const KernelInit& init)
      : channels_first_(init.node().node_attrs().GetOr<std::string>("data_format", "NHWC").substr(0, 2) == "NC"),
        training_(init.node().node_attrs().GetOr<bool>("is_training", true)),
        epsilon_(init.node().node_attrs().GetOr<float>("epsilon", 1e-4f)),
        average_factor_(init.node().node_attrs().GetOr<float>("exponential_avg_factor", 1.0f)) {}

  absl::Status Compute(KernelContext& ctx) override;

 private:
  // The float vectors of one execution.
  struct Statistics {
    const float* scale;
    const float* offset;
    const float* mean;
    const float* variance;
  };
  // Outputs 1 to 4.
  struct Outputs {
    float* mean;
    float* variance;
    float* saved_mean;
    float* saved_variance;
  };

  absl::Status Check(KernelContext& ctx, int64_t channels) const;
  absl::Status Normalize(KernelContext& ctx, const Statistics& given, int64_t channels, const float* x, int64_t rows,
                         const Outputs& outputs, float* y) const;
  void WriteTrained(const Statistics& given, const Moments& moments, int64_t rows, const Outputs& outputs) const;

  const bool channels_first_;
  const bool training_;
  const float epsilon_;
  const float average_factor_;
};

// In training, mean and variance only take part in a moving average; without one they are ignored.
absl::Status FusedBatchNormKernel::Check(KernelContext& ctx, int64_t channels) const {
  const int checked = training_ && average_factor_ == 1.0f ? 2 : kNumStatistics;
  for (int i = 1; i <= checked; ++i) {
    const Tensor& t = ctx.input(i);
    if (t.rank() != 1 || t.dim(0) != channels) {
      return absl::InvalidArgumentError(absl::StrCat(kInputNames[i], " must be a vector of ", channels,
                                                     " elements, one per channel of x, but has shape ",
                                                     t.shape().ToString()));
    }
  }
  for (int i = checked + 1; i <= kNumStatistics; ++i) {
    if (ctx.input(i).rank() == 1) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(kInputNames[i], " must be a vector but has shape ", ctx.input(i).shape().ToString()));
  }
  return absl::OkStatus();
}

absl::Status FusedBatchNormKernel::Compute(KernelContext& ctx) {
  const Tensor& input = ctx.input(0);
  if (input.rank() != 4 && input.rank() != 5) {
    return absl::InvalidArgumentError(absl::StrCat("x must have rank 4 or 5 but has shape ", input.shape().ToString()));
  }
  const int64_t channels = input.dim(channels_first_ ? 1 : input.rank() - 1);
  THALWEG_RETURN_IF_ERROR(Check(ctx, channels));
  float* vectors[kNumStatistics];
  for (int i = 0; i < kNumStatistics; ++i) {
    THALWEG_ASSIGN_OR_RETURN(Tensor * output, ctx.AllocateOutput(i + 1, Shape::Of({channels})));
    vectors[i] = static_cast<float*>(output->mutable_raw());
  }
  if (ctx.num_outputs() > 5) {  // version 3: a scalar that only other devices use
    THALWEG_ASSIGN_OR_RETURN(Tensor * reserved, ctx.AllocateOutput(5, Shape()));
    *static_cast<float*>(reserved->mutable_raw()) = 0;
  }
  const auto vector = [&](int i) { return static_cast<const float*>(ctx.input(i).raw()); };
  const Statistics given{vector(1), vector(2), vector(3), vector(4)};
  const Outputs outputs{vectors[0], vectors[1], vectors[2], vectors[3]};
  THALWEG_ASSIGN_OR_RETURN(Tensor x, ToComputing(ctx, input));
  const int64_t rows = channels == 0 ? 0 : input.num_elements() / channels;
  THALWEG_ASSIGN_OR_RETURN(ComputedOutput y, ComputedOutput::Allocate(ctx, 0, input.shape()));
  if (!channels_first_) {
    THALWEG_RETURN_IF_ERROR(Normalize(ctx, given, channels, static_cast<const float*>(x.raw()), rows, outputs,
                                      static_cast<float*>(y.data())));
  } else {
    THALWEG_ASSIGN_OR_RETURN(x, ToChannelsLast(ctx, x));
    THALWEG_ASSIGN_OR_RETURN(Tensor normalized, ctx.AllocateTemp(DType::kFloat32, x.shape()));
    THALWEG_RETURN_IF_ERROR(Normalize(ctx, given, channels, static_cast<const float*>(x.raw()), rows, outputs,
                                      static_cast<float*>(normalized.mutable_raw())));
    StoreChannelsFirst(ctx, normalized, y.mutable_tensor());
  }
  y.Finish(ctx);
  return absl::OkStatus();
}

absl::Status FusedBatchNormKernel::Normalize(KernelContext& ctx, const Statistics& given, int64_t channels,
                                             const float* x, int64_t rows, const Outputs& outputs, float* y) const {
  if (rows == 0) {  // there are no statistics of nothing
    for (float* out : {outputs.mean, outputs.variance})
      std::fill_n(out, channels, std::numeric_limits<float>::quiet_NaN());
    for (float* out : {outputs.saved_mean, outputs.saved_variance}) std::fill_n(out, channels, 0.0f);
    return absl::OkStatus();
  }
  if (training_) {
    WriteTrained(given, ComputeMoments(ctx, x, rows, channels), rows, outputs);
  } else {
    for (float* out : {outputs.mean, outputs.saved_mean}) std::copy_n(given.mean, channels, out);
    for (float* out : {outputs.variance, outputs.saved_variance}) std::copy_n(given.variance, channels, out);
  }
  std::vector<float> factors(channels);
  const size_t n = static_cast<size_t>(channels);
  BatchNormFactors<float>({given.scale, n}, {outputs.saved_variance, n}, epsilon_, factors.data());
  ctx.ParallelFor(rows, 0.4 * static_cast<double>(channels), [&](int64_t begin, int64_t end) {
    NormalizeRows(x + begin * channels, end - begin, channels, outputs.saved_mean, factors.data(), given.offset,
                  y + begin * channels);
  });
  return absl::OkStatus();
}

void FusedBatchNormKernel::WriteTrained(const Statistics& given, const Moments& moments, int64_t rows,
                                        const Outputs& outputs) const {
  const size_t channels = moments.mean.size();
  // The variance that leaves the op is that of the population of which the batch is a sample.
  const float correction = static_cast<float>(rows) / static_cast<float>(std::max<int64_t>(rows - 1, 1));
  const bool moving = average_factor_ != 1.0f;
  for (size_t c = 0; c < channels; ++c) {
    outputs.saved_mean[c] = moments.mean[c];
    outputs.saved_variance[c] = moments.variance[c];
    const float variance = moments.variance[c] * correction;
    outputs.mean[c] =
        moving ? (1 - average_factor_) * given.mean[c] + average_factor_ * moments.mean[c] : moments.mean[c];
    outputs.variance[c] = moving ? (1 - average_factor_) * given.variance[c] + average_factor_ * variance : variance;
  }
}

// A data_format with a D is for videos of rank 5; the kernels take them under any.
absl::Status FusedBatchNormShape(ShapeContext& c) {
  const std::string format = c.attrs().GetOr<std::string>("data_format", "NHWC");
  const bool channels_first = format.substr(0, 2) == "NC";
  const int rank = format.find('D') == std::string::npos ? 4 : 5;
  const bool training = c.attrs().GetOr<bool>("is_training", true);
  PartialShape x = c.input(0);
  if (x.has_rank() && x.rank() != rank) {
    return absl::InvalidArgumentError(
        absl::StrCat("x must have rank ", rank, " for data_format ", format, " but has shape ", x.ToString()));
  }
  int64_t channels = x.has_rank() ? x.dim(channels_first ? 1 : x.rank() - 1) : kUnknownDim;
  const bool all_matter = !training || c.attrs().GetOr<float>("exponential_avg_factor", 1.0f) != 1.0f;
  for (int i = 1; i <= kNumStatistics; ++i) {
    THALWEG_RETURN_IF_ERROR(c.RequireRank(i, 1));
    if (!c.input(i).has_rank() || (i > 2 && !all_matter)) continue;
    const absl::StatusOr<int64_t> merged = ShapeContext::MergeDim(channels, c.input(i).dim(0));
    if (!merged.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(kInputNames[i], " of shape ", c.input(i).ToString(),
                                                     " does not have as many elements as x of shape ", x.ToString(),
                                                     " has channels"));
    }
    channels = *merged;
  }
  if (x.has_rank()) x.set_dim(channels_first ? 1 : x.rank() - 1, channels);
  c.set_output(0, std::move(x));
  for (int i = 1; i <= kNumStatistics; ++i) c.set_output(i, PartialShape::OfDims({channels}));
  if (c.num_outputs() > 5) c.set_output(5, PartialShape::Known(Shape()));
  return absl::OkStatus();
}

}  // namespace

void RegisterBatchNormOps(OpLibrary& lib) {
  lib.schemas
      .Add(
          "FusedBatchNorm(x: T, scale: T, offset: T, mean: T, variance: T) -> "
          "(y: T, batch_mean: T, batch_variance: T, reserve_space_1: T, reserve_space_2: T)",
          "T: {float}; epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
          "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; is_training: bool = true")
      .Shape(FusedBatchNormShape)
      .Cost(ElementwiseCost<4>);
  lib.schemas
      .Add(
          "FusedBatchNormV2(x: T, scale: U, offset: U, mean: U, variance: U) -> "
          "(y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U)",
          "T: {half, bfloat16, float}; U: {float}; epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; "
          "data_format: {\"NHWC\", \"NCHW\"} = \"NHWC\"; is_training: bool = true")
      .Shape(FusedBatchNormShape)
      .Cost(ElementwiseCost<4>);
  lib.schemas
      .Add(
          "FusedBatchNormV3(x: T, scale: U, offset: U, mean: U, variance: U) -> "
          "(y: T, batch_mean: U, batch_variance: U, reserve_space_1: U, reserve_space_2: U, reserve_space_3: U)",
          "T: {half, bfloat16, float}; U: {bfloat16, float}; epsilon: float = 0.0001; "
          "exponential_avg_factor: float = 1.0; data_format: {\"NHWC\", \"NCHW\", \"NDHWC\", \"NCDHW\"} = \"NHWC\"; "
          "is_training: bool = true")
      .Shape(FusedBatchNormShape)
      .Cost(ElementwiseCost<4>);
  lib.kernels.Add("FusedBatchNorm", "cpu", MakeKernel<FusedBatchNormKernel>).Type<float>("T");
  lib.kernels.Add("FusedBatchNormV2", "cpu", MakeKernel<FusedBatchNormKernel>)
      .Type<float, half, bfloat16>("T")
      .Type<float>("U");
  lib.kernels.Add("FusedBatchNormV3", "cpu", MakeKernel<FusedBatchNormKernel>)
      .Type<float, half, bfloat16>("T")
      .Type<float>("U");
}

}  // namespace thalweg
