// Maximum, Minimum: NaN wins at either side (L18).
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// `a != a` holds for NaN only; where b is NaN, no comparison holds and b is chosen.
struct MaximumOp {
  template <typename T> static T Apply(T a, T b) { return (a > b) | (a != a) ? a : b; }
};

struct MinimumOp {
  template <typename T> static T Apply(T a, T b) { return (a < b) | (a != a) ? a : b; }
};

}  // namespace

void RegisterExtremumOps(OpLibrary& lib) {
  lib.schemas.Add("Maximum(x: T, y: T) -> z: T", "T: realnumbertype").Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<MaximumOp, FloatTypes, SignedTypes, UnsignedTypes>(lib, "Maximum");

  lib.schemas.Add("Minimum(x: T, y: T) -> z: T", "T: realnumbertype").Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<MinimumOp, FloatTypes, SignedTypes, UnsignedTypes>(lib, "Minimum");
}

}  // namespace thalweg::math
