// Floor, Ceil, Rint, and the classification of floats: IsNan, IsInf, IsFinite.
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
  RegisterFloatOp<IsNanOp>(lib, "IsNan", "bool");
  RegisterFloatOp<IsInfOp>(lib, "IsInf", "bool");
  RegisterFloatOp<IsFiniteOp>(lib, "IsFinite", "bool");
}

}  // namespace thalweg::math
