// Sin, Cos, Tan, their inverses and hyperbolic kin, Expm1, Log1p, Reciprocal, Inv: real and complex.
#include <cmath>
#include <complex>
#include <limits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// Functions of the C library, for real and complex numbers alike.
struct LibraryFunction {
  static constexpr double kNanos = 12.0;
};
// Of floats, all that are not huge are turned back by a few products, many at a time.
template <bool kCosine>
struct TurnOp : LibraryFunction {
  static constexpr float kGreatest = kCosine ? vector_math::kGreatestCosineTurn : vector_math::kGreatestSineTurn;

  template <typename T> static T Apply(T x) {
    if constexpr (kCosine) return std::cos(x);
    else return std::sin(x);
  }
  THALWEG_INLINE static float Apply(float x) { return vector_math::SineOfTurn<kCosine>(x, vector_math::SplitTurn(x)); }
  template <std::same_as<float> T> THALWEG_INLINE static bool IsRare(T x) {
    return (std::fabs(x) >= kGreatest) & (std::fabs(x) < std::numeric_limits<T>::infinity());
  }
  template <std::same_as<float> T> static T ApplyRare(T x) {
    return vector_math::SineOfTurn<kCosine>(x, vector_math::SplitGreatTurn(x));
  }
  template <std::same_as<float> T> static T ApplyRest(T x) { return kCosine ? std::cos(x) : std::sin(x); }
};
using SinOp = TurnOp<false>;
using CosOp = TurnOp<true>;
struct TanOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::tan(x); }
};
struct AsinOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::asin(x); }
  THALWEG_INLINE static float Apply(float x) { return vector_math::Asin(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return std::asin(x); }
};
struct AcosOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::acos(x); }
  THALWEG_INLINE static float Apply(float x) { return vector_math::Acos(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return std::acos(x); }
};
struct AtanOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::atan(x); }
  THALWEG_INLINE static quad_math::Quad ApplyToQuad(quad_math::Quad x) { return quad_math::Atan(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return std::atan(x); }
};
struct SinhOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::sinh(x); }
};
struct CoshOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::cosh(x); }
};
struct AsinhOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::asinh(x); }
};
struct AcoshOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::acosh(x); }
};
struct AtanhOp : LibraryFunction {
  template <typename T> static T Apply(T x) { return std::atanh(x); }
  THALWEG_INLINE static float Apply(float x) { return vector_math::Atanh(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return std::atanh(x); }
};

// exp(z) - 1 without cancellation near 0: (e^x - 1) cos y + (cos y - 1) + i e^x sin y, with cos y - 1 = -2 sin^2(y / 2).
struct Expm1Op {
  static constexpr double kNanos = 0.8;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Expm1(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return std::expm1(x); }
  template <typename T> static std::complex<T> Apply(std::complex<T> z) {
    const T grown = std::expm1(z.real()), s = std::sin(z.imag() / T(2));
    return {grown * std::cos(z.imag()) - T(2) * s * s, (grown + T(1)) * std::sin(z.imag())};
  }
};

// log(1 + z); the modulus comes from |1 + z|^2 - 1 = x (2 + x) + y^2, which does not cancel near 0.
struct Log1pOp {
  static constexpr double kNanos = 0.8;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Log1p(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return std::log1p(x); }
  template <typename T> static std::complex<T> Apply(std::complex<T> z) {
    const T x = z.real(), y = z.imag();
    const bool near_zero = std::fabs(x) < T(0.5) && std::fabs(y) < T(0.5);
    const T modulus = near_zero ? std::log1p(x * (T(2) + x) + y * y) / T(2) : std::log(std::hypot(T(1) + x, y));
    return {modulus, std::atan2(y, T(1) + x)};
  }
};

struct ReciprocalOp {
  template <typename T> static T Apply(T x) { return T(1) / x; }
  THALWEG_INLINE static quad_math::Quad ApplyToQuad(quad_math::Quad x) { return quad_math::Reciprocal(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return T(1) / x; }
};

template <typename Op>
void RegisterFunction(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(x: T) -> y: T"), "T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<10>);
  RegisterElementwiseFor<Op, FloatTypes, ComplexTypes>(lib, op);
}

void RegisterReciprocal(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(x: T) -> y: T"),
                  "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<ReciprocalOp, FloatTypes, ComplexTypes>(lib, op);
}

}  // namespace

void RegisterTrigonometricOps(OpLibrary& lib) {
  RegisterFunction<SinOp>(lib, "Sin");
  RegisterFunction<CosOp>(lib, "Cos");
  RegisterFunction<TanOp>(lib, "Tan");
  RegisterFunction<AsinOp>(lib, "Asin");
  RegisterFunction<AcosOp>(lib, "Acos");
  RegisterFunction<AtanOp>(lib, "Atan");
  RegisterFunction<SinhOp>(lib, "Sinh");
  RegisterFunction<CoshOp>(lib, "Cosh");
  RegisterFunction<AsinhOp>(lib, "Asinh");
  RegisterFunction<AcoshOp>(lib, "Acosh");
  RegisterFunction<AtanhOp>(lib, "Atanh");
  RegisterFunction<Expm1Op>(lib, "Expm1");
  RegisterFunction<Log1pOp>(lib, "Log1p");
  RegisterReciprocal(lib, "Reciprocal");
  RegisterReciprocal(lib, "Inv");
}

}  // namespace thalweg::math
