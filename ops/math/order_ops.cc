// Less, LessEqual, Greater, GreaterEqual.
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct LessOp {
  template <typename T> static bool Apply(T a, T b) { return a < b; }
};
struct LessEqualOp {
  template <typename T> static bool Apply(T a, T b) { return a <= b; }
};
struct GreaterOp {
  template <typename T> static bool Apply(T a, T b) { return a > b; }
};
struct GreaterEqualOp {
  template <typename T> static bool Apply(T a, T b) { return a >= b; }
};

template <typename Op>
void RegisterOrderOp(OpLibrary& lib, const std::string& op) {
  lib.schemas.Add(op + "(x: T, y: T) -> z: bool", "T: realnumbertype").Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<Op, FloatTypes, SignedTypes, UnsignedTypes>(lib, op);
}

}  // namespace

void RegisterOrderOps(OpLibrary& lib) {
  RegisterOrderOp<LessOp>(lib, "Less");
  RegisterOrderOp<LessEqualOp>(lib, "LessEqual");
  RegisterOrderOp<GreaterOp>(lib, "Greater");
  RegisterOrderOp<GreaterEqualOp>(lib, "GreaterEqual");
}

}  // namespace thalweg::math
