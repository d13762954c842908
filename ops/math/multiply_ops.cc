// Mul, RealDiv, SquaredDifference, Square.
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct MulOp {
  template <typename T> static T Apply(T a, T b) { return WrappingMul(a, b); }
};

struct RealDivOp {
  template <typename T> static T Apply(T a, T b) { return a / b; }
};

struct SquaredDifferenceOp {
  template <typename T> static T Apply(T a, T b) {
    const T d = WrappingSub(a, b);
    return WrappingMul(d, d);
  }
  template <typename T> static std::complex<T> Apply(std::complex<T> a, std::complex<T> b) {
    const std::complex<T> d = a - b;
    return WrappingMul(d, std::conj(d));
  }
};

struct SquareOp {
  template <typename T> static T Apply(T a) { return WrappingMul(a, a); }
};

}  // namespace

void RegisterMultiplyOps(OpLibrary& lib) {
  lib.schemas.Add("Mul(x: T, y: T) -> z: T",
                  "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
                  "complex128}")
      .Commutative().Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<MulOp, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "Mul");

  lib.schemas.Add("RealDiv(x: T, y: T) -> z: T",
                  "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
                  "complex128}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<RealDivOp, FloatTypes, ComplexTypes>(lib, "RealDiv");

  lib.schemas.Add("SquaredDifference(x: T, y: T) -> z: T",
                  "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
      .Commutative().Shape(BroadcastShape).Cost(ElementwiseCost<2>);
  RegisterElementwiseFor<SquaredDifferenceOp, FloatTypes, TypeList<int32_t, int64_t>, ComplexTypes>(lib, "SquaredDifference");

  lib.schemas.Add("Square(x: T) -> y: T",
                  "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
                  "complex128}")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<SquareOp, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "Square");
}

}  // namespace thalweg::math
