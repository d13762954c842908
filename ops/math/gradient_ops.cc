// Gradients of elementwise ops: SigmoidGrad, TanhGrad, SqrtGrad, RsqrtGrad, InvGrad, ReciprocalGrad from the op's result,
// ReluGrad and its kin from its result or operand.
#include <cmath>
#include <complex>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/same_shape_elementwise.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// The gradients of roots and reciprocals conjugate the result, those of Sigmoid and Tanh do not, as in TensorFlow.
template <typename T> THALWEG_INLINE T Conjugate(T x) { return x; }
template <typename T> THALWEG_INLINE std::complex<T> Conjugate(std::complex<T> x) { return std::conj(x); }

// No gradient coming in means none going out, whatever the function's slope there (L19).
template <typename T> THALWEG_INLINE T UnlessZero(T dy, T gradient) { return dy == T(0) ? T(0) : gradient; }

// Where a float has an order of its own here, it is that of TensorFlow's vector code.
struct SigmoidGradOp {
  template <typename T> static T Apply(T y, T dy) { return WrappingMul(WrappingMul(dy, y), T(1) - y); }
  static float Apply(float y, float dy) { return dy * (y * (1.0f - y)); }
  template <std::same_as<float> T> static T ApplyRest(T y, T dy) { return dy * y * (1.0f - y); }
};
struct TanhGradOp {
  template <typename T> static T Apply(T y, T dy) { return WrappingMul(dy, T(1) - WrappingMul(y, y)); }
};
struct SqrtGradOp {
  template <typename T> static T Apply(T y, T dy) { return UnlessZero(dy, T(0.5) * dy / Conjugate(y)); }
  static float Apply(float y, float dy) { return UnlessZero(dy, 0.5f / y * dy); }
  template <std::same_as<float> T> static T ApplyRest(T y, T dy) { return UnlessZero(dy, 0.5f * dy / y); }
};
struct RsqrtGradOp {
  template <typename T> static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return UnlessZero(dy, WrappingMul(T(-0.5) * WrappingMul(dy, c), WrappingMul(c, c)));
  }
  static float Apply(float y, float dy) {
    const float product = UnlessZero(dy, y * dy);
    return UnlessZero(product, -0.5f * (y * y) * product);
  }
  template <std::same_as<float> T> static T ApplyRest(T y, T dy) { return UnlessZero(dy, -0.5f * (dy * y) * (y * y)); }
};
struct ReciprocalGradOp {
  template <typename T> static T Apply(T y, T dy) {
    const T c = Conjugate(y);
    return UnlessZero(dy, WrappingMul(-WrappingMul(c, c), dy));
  }
};

struct ReluGradOp {
  template <typename T> static T Apply(T dy, T x) { return x > T(0) ? dy : T(0); }
};
struct Relu6GradOp {
  template <typename T> static T Apply(T dy, T x) { return x > T(0) && x < T(6) ? dy : T(0); }
};
struct LeakyReluGradOp {
  static constexpr const char* kAttr = "alpha";
  template <typename T> static T Apply(T dy, T x, double alpha) { return x > T(0) ? dy : dy * static_cast<T>(alpha); }
};
struct EluGradOp {
  template <typename T> static T Apply(T dy, T y) { return y < T(0) ? (y + T(1)) * dy : dy; }
};
struct SeluGradOp {
  template <typename T> static T Apply(T dy, T y) {
    constexpr T kScale = T(1.0507009873554804934193349852946);
    constexpr T kScaledAlpha = T(1.7580993408473768599402175208123);
    return y < T(0) ? dy * (y + kScaledAlpha) : dy * kScale;
  }
};
struct SoftplusGradOp {
  static constexpr double kNanos = 0.8;
  template <typename T> THALWEG_INLINE static T Apply(T dy, T x) { return dy / (vector_math::Exp(-x) + T(1)); }
  template <std::same_as<float> T> static T ApplyRest(T dy, T x) { return dy / (std::exp(-x) + T(1)); }
};
struct SoftsignGradOp {
  template <typename T> static T Apply(T dy, T x) {
    const T slope = T(1) + std::fabs(x);
    return dy / (slope * slope);
  }
};

// (y, dy): the gradient from the op's result.
template <typename Op>
void RegisterFromResult(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(y: T, dy: T) -> z: T"), "T: {bfloat16, half, float, double, complex64, complex128}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<3>);
  RegisterSameShapeElementwise<Op, OperandRule::kSameCount>(lib, op, FloatTypes());
  RegisterSameShapeElementwise<Op, OperandRule::kSameCount>(lib, op, ComplexTypes());
}

// (gradients, features or outputs) of an activation.
template <typename Op, typename... Lists>
void RegisterActivationGrad(OpLibrary& lib, absl::string_view op, absl::string_view second, absl::string_view attrs) {
  lib.schemas.Add(absl::StrCat(op, "(gradients: T, ", second, ": T) -> backprops: T"), attrs)
      .Shape(MergedShape).Cost(ElementwiseCost<2>);
  (RegisterSameShapeElementwise<Op, OperandRule::kSameShape>(lib, op, Lists()), ...);
}

}  // namespace

void RegisterGradientOps(OpLibrary& lib) {
  RegisterFromResult<SigmoidGradOp>(lib, "SigmoidGrad");
  RegisterFromResult<TanhGradOp>(lib, "TanhGrad");
  RegisterFromResult<SqrtGradOp>(lib, "SqrtGrad");
  RegisterFromResult<RsqrtGradOp>(lib, "RsqrtGrad");
  RegisterFromResult<ReciprocalGradOp>(lib, "ReciprocalGrad");
  RegisterFromResult<ReciprocalGradOp>(lib, "InvGrad");

  constexpr char kReal[] = "T: realnumbertype";
  constexpr char kFloat[] = "T: {half, bfloat16, float, double}";
  RegisterActivationGrad<ReluGradOp, FloatTypes, SignedTypes, UnsignedTypes>(lib, "ReluGrad", "features", kReal);
  RegisterActivationGrad<Relu6GradOp, FloatTypes, SignedTypes, UnsignedTypes>(lib, "Relu6Grad", "features", kReal);
  RegisterActivationGrad<LeakyReluGradOp, FloatTypes>(lib, "LeakyReluGrad", "features",
                                                      "alpha: float = 0.2; T: {half, bfloat16, float, double} = float");
  RegisterActivationGrad<EluGradOp, FloatTypes>(lib, "EluGrad", "outputs", kFloat);
  RegisterActivationGrad<SeluGradOp, FloatTypes>(lib, "SeluGrad", "outputs", kFloat);
  RegisterActivationGrad<SoftplusGradOp, FloatTypes>(lib, "SoftplusGrad", "features", kFloat);
  RegisterActivationGrad<SoftsignGradOp, FloatTypes>(lib, "SoftsignGrad", "features", kFloat);
}

}  // namespace thalweg::math
