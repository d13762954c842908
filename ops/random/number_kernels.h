// The kernel behind every op that fills a tensor with independent numbers: what differs is where the generator comes from
// and which distribution its bits go through.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/random_distributions.h"
#include "thalweg/ops/kernel.h"

namespace thalweg::random {

// Distributions without parameters.
template <typename Distribution>
struct Fixed {
  using Result = typename Distribution::Result;
  static absl::StatusOr<Distribution> Read(const KernelContext&) { return Distribution(); }
};

// [minval, maxval) from the two inputs after the first kFirst.
template <typename T, int kFirst>
struct Between {
  using Result = T;
  static absl::StatusOr<UniformInteger<T>> Read(const KernelContext& ctx) {
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(kFirst), "minval"));
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(kFirst + 1), "maxval"));
    const T low = ctx.input(kFirst).flat<T>()[0], high = ctx.input(kFirst + 1).flat<T>()[0];
    if (low < high) return UniformInteger<T>(low, high);
    return absl::InvalidArgumentError(absl::StrCat("minval must be less than maxval, but they are ", low, " and ", high));
  }
};

// Source: constructed from KernelInit; `absl::StatusOr<Philox> Take(KernelContext&, int64_t count)` gives a generator for
// that many numbers.
template <typename Source, typename Parameters>
class NumbersKernel final : public Kernel {
 public:
  explicit NumbersKernel(const KernelInit& init) : source_(init) {}

  absl::Status Compute(KernelContext& ctx) override {
    using T = typename Parameters::Result;
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ShapeArg(ctx.input(0), "shape"));
    THALWEG_ASSIGN_OR_RETURN(const Philox philox, source_.Take(ctx, shape.num_elements()));
    if (shape.num_elements() == 0) return ctx.AllocateOutput(0, shape).status();  // bounds do not matter then
    THALWEG_ASSIGN_OR_RETURN(const auto distribution, Parameters::Read(ctx));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    FillRandom(ctx, philox, distribution, out->mutable_flat<T>().data(), shape.num_elements());
    return absl::OkStatus();
  }

 private:
  Source source_;
};

}  // namespace thalweg::random
