// Softmax and LogSoftmax over the last dimension.
#include <cmath>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/nn/nn_ops.h"
#include "thalweg/ops/nn/softmax_row.h"

namespace thalweg {
namespace {

// Partial results are kept in this many lanes whatever the vector width, so that sums do not depend on the processor.
constexpr int kLanes = 16;

template <typename T>
THALWEG_CLONES T Largest(const T* in, int64_t n) {
  T lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<T>::infinity());
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = in[k + l] > lanes[l] ? in[k + l] : lanes[l];
  }
  for (int l = 0; k < n; ++k, ++l) lanes[l] = in[k] > lanes[l] ? in[k] : lanes[l];
  T largest = lanes[0];
  for (int l = 1; l < kLanes; ++l) largest = lanes[l] > largest ? lanes[l] : largest;
  return largest;
}

template <typename T>
THALWEG_INLINE T SumLanes(const T* lanes) {
  T sum = lanes[0];
  for (int l = 1; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

// out[k] = exp(in[k] - shift); returns the sum.
template <typename T>
THALWEG_CLONES T ExpShifted(const T* in, T shift, int64_t n, T* out) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) out[k] = vector_math::Exp(in[k] - shift);
  T lanes[kLanes] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += out[k + l];
  }
  for (int l = 0; k < n; ++k, ++l) lanes[l] += out[k];
  return SumLanes(lanes);
}

template <typename T>
THALWEG_CLONES void Scale(T factor, int64_t n, T* out) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) out[k] *= factor;
}

template <typename T>
THALWEG_CLONES void Shift(const T* in, T shift, T log_sum, int64_t n, T* out) {
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) out[k] = (in[k] - shift) - log_sum;
}

// One row; `out` may be `in`. A row with NaN, with +inf, or of -inf only becomes NaN: the shifted elements hold inf -
// inf.
template <typename T>
void LogSoftmaxRow(const T* in, int64_t n, T* scratch, T* out) {
  const T largest = Largest(in, n);
  const T sum = ExpShifted(in, largest, n, scratch);
  Shift(in, largest, std::log(sum), n, out);
}

// T is the computing type.
template <typename T, bool kLog>
class SoftmaxKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("logits must have at least rank 1 but have shape ", logits.shape().ToString()));
    const int64_t columns = logits.dim(logits.rank() - 1);
    if (logits.dtype() == DTypeOf<T>::value) {
      // LogSoftmax reads its input once more after writing.
      absl::StatusOr<Tensor*> output =
          kLog ? ctx.AllocateOutput(0, logits.shape()) : ctx.ForwardOrAllocateOutput({0}, 0, logits.shape());
      THALWEG_RETURN_IF_ERROR(output.status());
      Run(ctx, static_cast<const T*>(logits.raw()), logits.num_elements(), columns,
          static_cast<T*>((*output)->mutable_raw()));
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(const Tensor in, ToComputing(ctx, logits));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, logits.shape()));
    Run(ctx, static_cast<const T*>(in.raw()), in.num_elements(), columns, static_cast<T*>(output.data()));
    output.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  void Run(KernelContext& ctx, const T* in, int64_t elements, int64_t columns, T* out) const {
    if (elements == 0) return;
    ctx.ParallelFor(elements / columns, 2.0 * static_cast<double>(columns), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        if constexpr (kLog) LogSoftmaxRow(in + r * columns, columns, out + r * columns, out + r * columns);
        else SoftmaxOfRow(in + r * columns, columns, out + r * columns);
      }
    });
  }
};

absl::Status SoftmaxShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  return UnchangedShape(c);
}

}  // namespace

template <typename T>
RowSoftmax<T> SoftmaxOfRow(const T* in, int64_t n, T* out) {
  const T largest = Largest(in, n);
  const T sum = ExpShifted(in, largest, n, out);
  Scale(T(1) / sum, n, out);
  return {largest, std::log(sum)};
}

template RowSoftmax<float> SoftmaxOfRow<float>(const float*, int64_t, float*);
template RowSoftmax<double> SoftmaxOfRow<double>(const double*, int64_t, double*);

void RegisterSoftmaxOps(OpLibrary& lib) {
  lib.schemas.Add("Softmax(logits: T) -> softmax: T", "T: {half, bfloat16, float, double}")
      .Shape(SoftmaxShape)
      .Cost(ElementwiseCost<14>);
  lib.schemas.Add("LogSoftmax(logits: T) -> logsoftmax: T", "T: {half, bfloat16, float, double}")
      .Shape(SoftmaxShape)
      .Cost(ElementwiseCost<14>);
  lib.kernels.Add("Softmax", "cpu", MakeKernel<SoftmaxKernel<float, false>>).Type<float, half, bfloat16>("T");
  lib.kernels.Add("Softmax", "cpu", MakeKernel<SoftmaxKernel<double, false>>).Type<double>("T");
  lib.kernels.Add("LogSoftmax", "cpu", MakeKernel<SoftmaxKernel<float, true>>).Type<float, half, bfloat16>("T");
  lib.kernels.Add("LogSoftmax", "cpu", MakeKernel<SoftmaxKernel<double, true>>).Type<double>("T");
}

}  // namespace thalweg
