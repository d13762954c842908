// Relu, Relu6, LeakyRelu, Elu, Selu, Softplus, Softsign.
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/vector_math.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// Written so that NaN passes.
struct ReluOp {
  template <typename T> static T Apply(T x) { return x < T(0) ? T(0) : x; }
};
struct Relu6Op {
  template <typename T> static T Apply(T x) {
    const T positive = x < T(0) ? T(0) : x;
    return positive > T(6) ? T(6) : positive;
  }
};
struct LeakyReluOp {
  static constexpr const char* kAttr = "alpha";
  template <typename T> static T Apply(T x, double alpha) { return x > T(0) ? x : x * static_cast<T>(alpha); }
};
// What is below 0 in Elu and Selu. In float, TensorFlow's difference, which cancels near 0.
template <typename T>
THALWEG_INLINE T ExpMinusOne(T x) {
  if constexpr (std::is_same_v<T, float>) return vector_math::Exp(x) - 1.0f;
  else return vector_math::Expm1(x);
}

struct EluOp {
  static constexpr double kNanos = 0.7;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return x < T(0) ? ExpMinusOne(x) : x; }
  template <std::same_as<float> T> static T ApplyRest(T x) { return x < T(0) ? std::exp(x) - T(1) : x; }
};
struct SeluOp {
  static constexpr double kNanos = 0.7;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return Scaled(x, ExpMinusOne(x)); }
  template <std::same_as<float> T> static T ApplyRest(T x) { return Scaled(x, std::exp(x) - T(1)); }

 private:
  template <typename T> THALWEG_INLINE static T Scaled(T x, T of_negative) {
    constexpr T kScale = T(1.0507009873554804934193349852946);
    constexpr T kScaledAlpha = T(1.7580993408473768599402175208123);
    return x < T(0) ? kScaledAlpha * of_negative : kScale * x;
  }
};
struct SoftplusOp {
  static constexpr double kNanos = 2.0;
  template <typename T> THALWEG_INLINE static T Apply(T x) { return vector_math::Softplus(x); }
  template <std::same_as<float> T> static T ApplyRest(T x) {
    const T e = std::exp(x);
    return vector_math::SoftplusOf(x, e, std::log1p(e));
  }
};
struct SoftsignOp {
  template <typename T> static T Apply(T x) { return x / (T(1) + std::fabs(x)); }
};

template <typename Op>
void RegisterActivation(OpLibrary& lib, absl::string_view op) { RegisterElementwiseFor<Op, FloatTypes>(lib, op); }

}  // namespace

void RegisterActivationOps(OpLibrary& lib) {
  lib.schemas.Add("Relu(features: T) -> activations: T",
                  "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<ReluOp, FloatTypes, SignedTypes, UnsignedTypes>(lib, "Relu");

  lib.schemas.Add("Relu6(features: T) -> activations: T", "T: realnumbertype").Shape(UnchangedShape).Cost(ElementwiseCost<2>);
  RegisterElementwiseFor<Relu6Op, FloatTypes, SignedTypes, UnsignedTypes>(lib, "Relu6");

  lib.schemas.Add("LeakyRelu(features: T) -> activations: T", "alpha: float = 0.2; T: {half, bfloat16, float, double} = float")
      .Shape(UnchangedShape).Cost(ElementwiseCost<2>);
  RegisterActivation<LeakyReluOp>(lib, "LeakyRelu");

  for (const char* op : {"Elu", "Selu", "Softplus", "Softsign"}) {
    lib.schemas.Add(absl::StrCat(op, "(features: T) -> activations: T"), "T: {half, bfloat16, float, double}")
        .Shape(UnchangedShape).Cost(ElementwiseCost<10>);
  }
  RegisterActivation<EluOp>(lib, "Elu");
  RegisterActivation<SeluOp>(lib, "Selu");
  RegisterActivation<SoftplusOp>(lib, "Softplus");
  RegisterActivation<SoftsignOp>(lib, "Softsign");
}

}  // namespace thalweg::math
