// CheckNumerics: passes its input on if every element is finite, fails otherwise.
#include <atomic>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// The bits of the exponent of T; all of them set means infinity or NaN.
template <typename T> struct ExponentBits;
template <> struct ExponentBits<half> { using Word = uint16_t; static constexpr Word kMask = 0x7c00; };
template <> struct ExponentBits<bfloat16> { using Word = uint16_t; static constexpr Word kMask = 0x7f80; };
template <> struct ExponentBits<float> { using Word = uint32_t; static constexpr Word kMask = 0x7f800000; };
template <> struct ExponentBits<double> { using Word = uint64_t; static constexpr Word kMask = 0x7ff0000000000000; };

template <typename Word>
THALWEG_CLONES bool AnyNotFinite(const Word* words, int64_t n, Word mask) {
  Word found = 0;
  for (int64_t k = 0; k < n; ++k) found |= static_cast<Word>((words[k] & mask) == mask ? 1 : 0);
  return found != 0;
}

template <typename T>
class CheckNumericsKernel final : public Kernel {
 public:
  explicit CheckNumericsKernel(const KernelInit& init) : message_(init.Attr<std::string>("message").value_or("")) {}

  absl::Status Compute(KernelContext& ctx) override {
    using Word = typename ExponentBits<T>::Word;
    const Word* words = static_cast<const Word*>(ctx.input(0).raw());
    std::atomic<bool> found{false};
    ctx.ParallelFor(ctx.input(0).num_elements(), 0.2, [&](int64_t begin, int64_t end) {
      if (AnyNotFinite(words + begin, end - begin, ExponentBits<T>::kMask)) found.store(true, std::memory_order_relaxed);
    });
    if (found.load(std::memory_order_relaxed)) return Describe(ctx.input(0).flat<T>());
    ctx.SetOutput(0, ctx.TakeInput(0));
    return absl::OkStatus();
  }

 private:
  absl::Status Describe(absl::Span<const T> elements) const {
    int64_t nans = 0, infinities = 0, first = -1;
    for (size_t k = 0; k < elements.size(); ++k) {
      const double x = static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(elements[k]));
      if (std::isfinite(x)) continue;
      ++(std::isnan(x) ? nans : infinities);
      if (first < 0) first = static_cast<int64_t>(k);
    }
    return absl::InvalidArgumentError(absl::StrCat(message_, ": the tensor has ", nans, " NaN and ", infinities,
                                                   " Inf elements of ", elements.size(), ", the first at flat index ", first));
  }

  const std::string message_;
};

template <typename... Ts>
void RegisterCheckNumerics(OpLibrary& lib, TypeList<Ts...>) {
  (lib.kernels.Add("CheckNumerics", "cpu", &MakeKernel<CheckNumericsKernel<Ts>>).template Type<Ts>("T"), ...);
}

}  // namespace

void RegisterCheckNumericsOp(OpLibrary& lib) {
  lib.schemas.Add("CheckNumerics(tensor: T) -> output: T", "T: {bfloat16, half, float, double}; message: string")
      .Stateful().Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterCheckNumerics(lib, FloatTypes());
}

}  // namespace thalweg::math
