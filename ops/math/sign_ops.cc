// Neg, Abs, Sign.
#include <cmath>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct NegOp {
  template <typename T> static T Apply(T x) { return WrappingNeg(x); }
};

// The lowest integer is its own absolute value.
struct AbsOp {
  template <typename T> static T Apply(T x) {
    if constexpr (std::is_integral_v<T>) return x < T(0) ? WrappingNeg(x) : x;
    else return std::fabs(x);
  }
};

// -1, 0 or 1; NaN for NaN; a complex number on the unit circle, or 0.
struct SignOp {
  template <typename T> static T Apply(T x) {
    const T sign = static_cast<T>((x > T(0)) - (x < T(0)));
    return x == x ? sign : x;
  }
  template <typename T> static std::complex<T> Apply(std::complex<T> z) {
    const T length = std::abs(z);
    return length == T(0) ? std::complex<T>(0) : z / length;
  }
};

}  // namespace

void RegisterSignOps(OpLibrary& lib) {
  lib.schemas.Add("Neg(x: T) -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<NegOp, FloatTypes, SignedTypes, ComplexTypes>(lib, "Neg");

  lib.schemas.Add("Abs(x: T) -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<AbsOp, FloatTypes, SignedTypes>(lib, "Abs");

  lib.schemas.Add("Sign(x: T) -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<SignOp, FloatTypes, SignedTypes, ComplexTypes>(lib, "Sign");
}

}  // namespace thalweg::math
