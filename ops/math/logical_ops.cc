// LogicalAnd, LogicalOr, LogicalNot.
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// Without short circuits, so that loops become vector code.
struct AndOp {
  static bool Apply(bool a, bool b) { return a & b; }
};
struct OrOp {
  static bool Apply(bool a, bool b) { return a | b; }
};
struct NotOp {
  static bool Apply(bool a) { return !a; }
};

}  // namespace

void RegisterLogicalOps(OpLibrary& lib) {
  lib.schemas.Add("LogicalAnd(x: bool, y: bool) -> z: bool").Commutative().Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  lib.kernels.Add("LogicalAnd", "cpu", &MakeElementwise<kElementwise<AndOp, bool>>);

  lib.schemas.Add("LogicalOr(x: bool, y: bool) -> z: bool").Commutative().Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  lib.kernels.Add("LogicalOr", "cpu", &MakeElementwise<kElementwise<OrOp, bool>>);

  lib.schemas.Add("LogicalNot(x: bool) -> y: bool").Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  lib.kernels.Add("LogicalNot", "cpu", &MakeElementwise<kElementwise<NotOp, bool>>);
}

}  // namespace thalweg::math
