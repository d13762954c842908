// Floor, Ceil, Rint, Round, and the classification of floats: IsNan, IsInf, IsFinite.
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct FloorOp {
  template <typename T> static T Apply(T x) { return std::floor(x); }
};
struct CeilOp {
  template <typename T> static T Apply(T x) { return std::ceil(x); }
};
// To nearest, ties to even.
struct RintOp {
  template <typename T> static T Apply(T x) { return std::nearbyint(x); }
};
// Integers are round already.
struct RoundIntegerOp {
  template <typename T> static T Apply(T x) { return x; }
};
struct IsNanOp {
  template <typename T> static bool Apply(T x) { return x != x; }
};
struct IsInfOp {
  template <typename T> static bool Apply(T x) { return std::fabs(x) == std::numeric_limits<T>::infinity(); }
};
struct IsFiniteOp {
  template <typename T> static bool Apply(T x) { return std::fabs(x) < std::numeric_limits<T>::infinity(); }
};

template <typename Op>
void RegisterFloatOp(OpLibrary& lib, const std::string& op, absl::string_view result) {
  lib.schemas.Add(absl::StrCat(op, "(x: T) -> y: ", result), "T: {bfloat16, half, float, double}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<Op, FloatTypes>(lib, op);
}

}  // namespace

void RegisterRoundingOps(OpLibrary& lib) {
  RegisterFloatOp<FloorOp>(lib, "Floor", "T");
  RegisterFloatOp<CeilOp>(lib, "Ceil", "T");
  RegisterFloatOp<RintOp>(lib, "Rint", "T");
  lib.schemas.Add("Round(x: T) -> y: T",
                  "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<RintOp, FloatTypes>(lib, "Round");
  RegisterElementwise<RoundIntegerOp, int32_t, int64_t>(lib, "Round");
  RegisterFloatOp<IsNanOp>(lib, "IsNan", "bool");
  RegisterFloatOp<IsInfOp>(lib, "IsInf", "bool");
  RegisterFloatOp<IsFiniteOp>(lib, "IsFinite", "bool");
}

}  // namespace thalweg::math
