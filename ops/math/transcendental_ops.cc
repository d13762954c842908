// Sqrt, Rsqrt, Exp, Log, Tanh, Sigmoid, Erf and their kin on real numbers.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct SqrtOp {
  template <typename T> static T Apply(T x) { return std::sqrt(x); }
};
struct RsqrtOp {
  template <typename T> static T Apply(T x) { return T(1) / std::sqrt(x); }
  THALWEG_INLINE static quad_math::Quad ApplyToQuad(quad_math::Quad x) { return quad_math::Rsqrt(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return T(1) / std::sqrt(x); }
};
struct ExpOp {
  static constexpr double kNanos = 0.6;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Exp(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return std::exp(x); }
};
struct LogOp {
  static constexpr double kNanos = 0.6;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Log(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) {
    // The C library's logarithm of a denormal is that of the smallest one where denormals are flushed, and NaN if it is
    // negative. Denormals are told from zeros by their bits: comparisons flush them (L15).
    constexpr uint32_t kSmallestNormal = 0x00800000, kSign = 0x80000000;
    const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & ~kSign;
    const float of_denormal = bits & kSign ? std::numeric_limits<float>::quiet_NaN() : -103.972077f;
    return (magnitude != 0) & (magnitude < kSmallestNormal) ? of_denormal : std::log(x);
  }
};
struct TanhOp {
  static constexpr double kNanos = 0.7;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Tanh(x); }
};
struct SigmoidOp {
  static constexpr double kNanos = 0.7;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Sigmoid(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) {
    const T e = std::exp(vector_math::AtMost(x, 16.6355324f));
    return e / (1.0f + e);
  }
};
struct ErfOp {
  static constexpr double kNanos = 1.0;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Erf(x); }
};

template <typename Op>
void RegisterReal(OpLibrary& lib, absl::string_view op) { RegisterElementwiseFor<Op, FloatTypes>(lib, op); }

}  // namespace

void RegisterTranscendentalOps(OpLibrary& lib) {
  for (const char* op : {"Sqrt", "Rsqrt", "Exp", "Log", "Tanh", "Sigmoid"}) {
    lib.schemas.Add(absl::StrCat(op, "(x: T) -> y: T"), "T: {bfloat16, half, float, double, complex64, complex128}")
        .Shape(UnchangedShape).Cost(ElementwiseCost<10>);
  }
  RegisterReal<SqrtOp>(lib, "Sqrt");
  RegisterReal<RsqrtOp>(lib, "Rsqrt");
  RegisterReal<ExpOp>(lib, "Exp");
  RegisterReal<LogOp>(lib, "Log");
  RegisterReal<TanhOp>(lib, "Tanh");
  RegisterReal<SigmoidOp>(lib, "Sigmoid");

  lib.schemas.Add("Erf(x: T) -> y: T", "T: {bfloat16, half, float, double}").Shape(UnchangedShape).Cost(ElementwiseCost<10>);
  RegisterReal<ErfOp>(lib, "Erf");
}

}  // namespace thalweg::math
