// Pow: integers by repeated squaring, floats by vector_pow.h, the rest by the C library.
#include <cmath>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/vector_pow.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct IntegerPowOp {
  static constexpr double kNanos = 5.0;
  static constexpr const char* kRefusal = "integers to negative integer powers are not defined: cast to a float type first";
  template <typename T> static bool Refuses(T, T exponent) { return exponent < T(0); }
  template <typename T> static T Apply(T base, T exponent) {
    T result = 1;
    for (; exponent > 0; exponent = static_cast<T>(exponent >> 1)) {
      if (exponent & 1) result = WrappingMul(result, base);
      base = WrappingMul(base, base);
    }
    return result;
  }
};

struct PowOp {
  static constexpr double kNanos = 15.0;
  template <typename T> static T Apply(T base, T exponent) { return std::pow(base, exponent); }
};
struct FloatPowOp {
  static constexpr double kNanos = 4.0;
  THALWEG_INLINE static float Apply(float base, float exponent) { return vector_math::Pow(base, exponent); }
  template <std::same_as<float> T> static T ApplyRest(T base, T exponent) { return std::pow(base, exponent); }
};

}  // namespace

void RegisterPowOp(OpLibrary& lib) {
  lib.schemas.Add("Pow(x: T, y: T) -> z: T",
                  "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<20>);
  RegisterElementwiseFor<IntegerPowOp, SignedTypes>(lib, "Pow");
  RegisterElementwise<FloatPowOp, float>(lib, "Pow");
  RegisterElementwise<PowOp, half, bfloat16, double>(lib, "Pow");
  RegisterElementwise<PowOp>(lib, "Pow", ComplexTypes());
}

}  // namespace thalweg::math
