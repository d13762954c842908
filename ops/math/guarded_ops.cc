// Binary functions that state what happens at the edges: DivNoNan, MulNoNan, Xdivy, Xlogy, Xlog1py; and Atan2, NextAfter,
// ApproximateEqual.
#include <cmath>
#include <complex>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/same_shape_elementwise.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// Nothing divided by nothing is nothing.
struct DivNoNanOp {
  template <typename T> static T Apply(T x, T y) { return y == T(0) ? T(0) : x / y; }
};
struct MulNoNanOp {
  template <typename T> static T Apply(T x, T y) { return y == T(0) ? T(0) : WrappingMul(x, y); }
};

// The next three are 0 where x is, whatever y may be; of floats, whole groups keep its sign.
template <typename T> THALWEG_INLINE T UnlessZero(T x, T result) {
  T zero(0);
  if constexpr (std::is_same_v<T, float>) zero = std::copysign(zero, x);
  return x == T(0) ? zero : result;
}
struct XdivyOp {
  template <typename T> static T Apply(T x, T y) { return UnlessZero(x, x / y); }
  template <std::same_as<float> T> static T ApplyRest(T x, T y) { return x == T(0) ? T(0) : x / y; }
};
struct XlogyOp {
  static constexpr double kNanos = 1.0;
  template <typename T> THALWEG_INLINE static T Apply(T x, T y) {
    return UnlessZero(x, x * vector_math::Log(y));
  }
  template <std::same_as<float> T> static T ApplyRest(T x, T y) { return x == T(0) ? T(0) : x * std::log(y); }
  template <typename T> static std::complex<T> Apply(std::complex<T> x, std::complex<T> y) {
    return x == std::complex<T>(0) ? x : x * std::log(y);
  }
};
struct Xlog1pyOp {
  static constexpr double kNanos = 1.0;
  template <typename T> THALWEG_INLINE static T Apply(T x, T y) {
    return UnlessZero(x, x * vector_math::Log1p(y));
  }
  template <std::same_as<float> T> static T ApplyRest(T x, T y) { return x == T(0) ? T(0) : x * std::log1p(y); }
  template <typename T> static std::complex<T> Apply(std::complex<T> x, std::complex<T> y) {
    return x == std::complex<T>(0) ? x : x * std::log(T(1) + y);
  }
};

struct Atan2Op {
  static constexpr double kNanos = 15.0;
  template <typename T> static T Apply(T y, T x) { return std::atan2(y, x); }
};
struct NextAfterOp {
  static constexpr double kNanos = 5.0;
  template <typename T> static T Apply(T from, T to) { return std::nextafter(from, to); }
};
struct ApproximateEqualOp {
  static constexpr const char* kAttr = "tolerance";
  template <typename T> static bool Apply(T x, T y, double tolerance) { return std::fabs(x - y) <= static_cast<T>(tolerance); }
};

template <typename Op>
void RegisterGuarded(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(x: T, y: T) -> z: T"), "T: {half, bfloat16, float, double, complex64, complex128}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<2>);
  RegisterElementwiseFor<Op, FloatTypes, ComplexTypes>(lib, op);
}

}  // namespace

void RegisterGuardedOps(OpLibrary& lib) {
  RegisterGuarded<DivNoNanOp>(lib, "DivNoNan");
  RegisterGuarded<MulNoNanOp>(lib, "MulNoNan");
  RegisterGuarded<XdivyOp>(lib, "Xdivy");
  RegisterGuarded<XlogyOp>(lib, "Xlogy");
  RegisterGuarded<Xlog1pyOp>(lib, "Xlog1py");

  lib.schemas.Add("Atan2(y: T, x: T) -> z: T", "T: {bfloat16, half, float, double}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<20>);
  RegisterElementwiseFor<Atan2Op, FloatTypes>(lib, "Atan2");

  lib.schemas.Add("NextAfter(x1: T, x2: T) -> output: T", "T: {double, float} = float")
      .Shape(BroadcastShape).Cost(ElementwiseCost<4>);
  RegisterElementwise<NextAfterOp, float, double>(lib, "NextAfter");

  lib.schemas.Add("ApproximateEqual(x: T, y: T) -> z: bool", "T: numbertype; tolerance: float = 0.00001")
      .Commutative().Shape(MergedShape).Cost(ElementwiseCost<2>);
  RegisterSameShapeElementwise<ApproximateEqualOp, OperandRule::kSameShape>(lib, "ApproximateEqual", TypeList<float, double>());
}

}  // namespace thalweg::math
