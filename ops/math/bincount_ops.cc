// Bincount and DenseBincount: how often each number occurs, or the sum of the weights of its occurrences.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

absl::StatusOr<int64_t> ReadSize(const Tensor& t) {
  THALWEG_ASSIGN_OR_RETURN(const int64_t size, IntScalarArg(t, "size"));
  if (size >= 0) return size;
  return absl::InvalidArgumentError(absl::StrCat("size is ", size, "; it must not be negative"));
}

absl::Status CheckWeights(const Shape& numbers, const Shape& weights) {
  if (weights == numbers || weights.num_elements() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("weights must be empty or have the shape of the numbers, ", numbers.ToString(),
                                                 ", but has ", weights.ToString()));
}

// Counts numbers into bins, one row of bins for each row of numbers; numbers beyond the bins are left out.
template <typename T>
absl::Status Count(const Tensor& numbers, int64_t row, int64_t size, absl::Span<const T> weights, bool binary, T* bins) {
  return WithIndices(numbers, [&](auto values) {
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t number = static_cast<int64_t>(values[i]);
      if (number < 0) {
        return absl::InvalidArgumentError(absl::StrCat("the number at ", CoordinateString(numbers.shape(), static_cast<int64_t>(i)),
                                                       " is ", number, "; it must not be negative"));
      }
      if (number >= size) continue;
      T& bin = bins[static_cast<int64_t>(i) / row * size + number];
      bin = binary ? T(1) : WrappingAdd(bin, weights.empty() ? T(1) : weights[i]);
    }
    return absl::OkStatus();
  });
}

// Numbers of any shape, one row of bins.
template <typename T>
class BincountKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& numbers = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const int64_t size, ReadSize(ctx.input(1)));
    THALWEG_RETURN_IF_ERROR(CheckWeights(numbers.shape(), ctx.input(2).shape()));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Of({size})));
    std::fill_n(out->mutable_flat<T>().data(), size, T(0));
    const int64_t row = std::max<int64_t>(1, numbers.num_elements());
    return Count<T>(numbers, row, size, ctx.input(2).flat<T>(), false, out->mutable_flat<T>().data());
  }
};

// A vector, or a matrix with bins of its own for each row; may tell only whether a number occurs.
template <typename T>
class DenseBincountKernel final : public Kernel {
 public:
  explicit DenseBincountKernel(const KernelInit& init) : binary_(init.node().node_attrs().GetOr<bool>("binary_output", false)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& numbers = ctx.input(0);
    if (numbers.rank() > 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("input must have at most rank 2, but its shape is ", numbers.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const int64_t size, ReadSize(ctx.input(1)));
    THALWEG_RETURN_IF_ERROR(CheckWeights(numbers.shape(), ctx.input(2).shape()));
    Dims dims = {size};
    if (numbers.rank() == 2) dims.insert(dims.begin(), numbers.dim(0));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    std::fill_n(out->mutable_flat<T>().data(), shape.num_elements(), T(0));
    const int64_t row = numbers.rank() == 2 ? numbers.dim(1) : numbers.num_elements();
    return Count<T>(numbers, std::max<int64_t>(1, row), size, ctx.input(2).flat<T>(), binary_, out->mutable_flat<T>().data());
  }

 private:
  const bool binary_;
};

// The number of bins as far as known. InvalidArgument if negative.
absl::StatusOr<int64_t> BinsDim(const ShapeContext& c) {
  const std::optional<int64_t> size = c.input_int(1);
  if (size && *size < 0) return absl::InvalidArgumentError(absl::StrCat("size is ", *size, "; it must not be negative"));
  return size ? *size : kUnknownDim;
}

absl::Status BincountShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  THALWEG_ASSIGN_OR_RETURN(const int64_t bins, BinsDim(c));
  c.set_output(0, PartialShape::OfDims({bins}));
  return absl::OkStatus();
}

absl::Status DenseBincountShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  THALWEG_ASSIGN_OR_RETURN(const int64_t bins, BinsDim(c));
  if (!c.input(0).has_rank()) return absl::OkStatus();
  c.set_output(0, c.input(0).rank() == 2 ? PartialShape::OfDims({c.input(0).dim(0), bins}) : PartialShape::OfDims({bins}));
  return absl::OkStatus();
}

template <typename... Ts>
void AddKernels(OpLibrary& lib) {
  (lib.kernels.Add("Bincount", "cpu", &MakeKernel<BincountKernel<Ts>>).template Type<Ts>("T").HostMemory("size"), ...);
  (lib.kernels.Add("DenseBincount", "cpu", &MakeKernel<DenseBincountKernel<Ts>>).template Type<Ts>("T").HostMemory("size"), ...);
}

}  // namespace

void RegisterBincountOps(OpLibrary& lib) {
  lib.schemas.Add("Bincount(arr: int32, size: int32, weights: T) -> bins: T", "T: {int32, int64, float, double}")
      .Shape(BincountShape).Cost(ReductionCost);
  lib.schemas.Add("DenseBincount(input: Tidx, size: Tidx, weights: T) -> output: T",
                  "Tidx: {int32, int64}; T: {int32, int64, float, double}; binary_output: bool = false")
      .Shape(DenseBincountShape).Cost(ReductionCost);
  AddKernels<int32_t, int64_t, float, double>(lib);
}

}  // namespace thalweg::math
