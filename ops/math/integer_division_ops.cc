// FloorDiv and FloorMod: division rounded down, and its remainder, which has the sign of the divisor; TruncateDiv, Div,
// TruncateMod and Mod: division rounded towards zero, and its remainder, which has the sign of the dividend.
#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// What integer divisions have in common: a zero divisor fails the step, and dividing by -1 wraps (L16).
struct IntegerDivision {
  static constexpr double kNanos = 2.0;
  static constexpr const char* kRefusal = "integer division by zero";
  template <typename T> static bool Refuses(T, T b) { return b == T(0); }
  template <typename T> static bool IsMinusOne(T b) { return std::is_signed_v<T> && b == static_cast<T>(-1); }
};

struct FloorDivIntOp : IntegerDivision {
  template <typename T> static T Apply(T a, T b) {
    if (IsMinusOne(b)) return WrappingNeg(a);
    const T quotient = static_cast<T>(a / b);
    const bool round_down = std::is_signed_v<T> && (a % b != 0) && ((a < T(0)) != (b < T(0)));
    return static_cast<T>(quotient - (round_down ? 1 : 0));
  }
};

struct FloorModIntOp : IntegerDivision {
  template <typename T> static T Apply(T a, T b) {
    if (IsMinusOne(b)) return T(0);
    const T remainder = static_cast<T>(a % b);
    const bool other_sign = remainder != T(0) && ((remainder < T(0)) != (b < T(0)));
    return static_cast<T>(remainder + (other_sign ? b : T(0)));
  }
};

// floor(x / y), the quotient rounded to T first (L17).
struct FloorDivOp {
  static constexpr bool kInStorageType = true;
  template <typename T> static T Apply(T a, T b) { return T(std::floor(static_cast<Wider<T>>(a / b))); }

 private:
  template <typename T> using Wider = std::conditional_t<sizeof(T) == 2, float, T>;
};

struct TruncateDivIntOp : IntegerDivision {
  template <typename T> static T Apply(T a, T b) { return IsMinusOne(b) ? WrappingNeg(a) : static_cast<T>(a / b); }
};

struct TruncateModIntOp : IntegerDivision {
  template <typename T> static T Apply(T a, T b) { return IsMinusOne(b) ? T(0) : static_cast<T>(a % b); }
};

struct TruncateDivOp {
  static constexpr bool kInStorageType = true;
  template <typename T> static T Apply(T a, T b) { return T(std::trunc(static_cast<Wider<T>>(a / b))); }

 private:
  template <typename T> using Wider = std::conditional_t<sizeof(T) == 2, float, T>;
};

struct TruncateModOp {
  static constexpr double kNanos = 8.0;
  template <typename T> static T Apply(T a, T b) { return std::fmod(a, b); }
};

struct DivOp {
  template <typename T> static T Apply(T a, T b) { return a / b; }
};

struct FloorModOp {
  static constexpr double kNanos = 8.0;
  template <typename T> static T Apply(T a, T b) {
    const T remainder = std::fmod(a, b);
    return remainder != T(0) && ((remainder < T(0)) != (b < T(0))) ? remainder + b : remainder;
  }
};

void RegisterTruncatingOps(OpLibrary& lib) {
  for (const char* op : {"TruncateDiv", "Div"}) {
    lib.schemas.Add(absl::StrCat(op, "(x: T, y: T) -> z: T"),
                    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
                    "complex128}")
        .Shape(BroadcastShape).Cost(ElementwiseCost<4>);
    RegisterElementwiseFor<TruncateDivIntOp, SignedTypes, UnsignedTypes>(lib, op);
  }
  RegisterElementwiseFor<TruncateDivOp, FloatTypes>(lib, "TruncateDiv");
  RegisterElementwiseFor<DivOp, FloatTypes, ComplexTypes>(lib, "Div");

  lib.schemas.Add("TruncateMod(x: T, y: T) -> z: T", "T: {int32, int64, bfloat16, half, float, double}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<10>);
  lib.schemas.Add("Mod(x: T, y: T) -> z: T", "T: {int32, int64, half, bfloat16, float, double}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<10>);
  for (const char* op : {"TruncateMod", "Mod"}) {
    RegisterElementwise<TruncateModIntOp, int32_t, int64_t>(lib, op);
    RegisterElementwise<TruncateModOp, float, double>(lib, op);
  }
}

}  // namespace

void RegisterIntegerDivisionOps(OpLibrary& lib) {
  lib.schemas.Add("FloorDiv(x: T, y: T) -> z: T",
                  "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
                  "complex128}")
      .Shape(BroadcastShape).Cost(ElementwiseCost<4>);
  RegisterElementwiseFor<FloorDivIntOp, SignedTypes, UnsignedTypes>(lib, "FloorDiv");
  RegisterElementwiseFor<FloorDivOp, FloatTypes>(lib, "FloorDiv");

  lib.schemas.Add("FloorMod(x: T, y: T) -> z: T", "T: realnumbertype").Shape(BroadcastShape).Cost(ElementwiseCost<10>);
  RegisterElementwiseFor<FloorModIntOp, SignedTypes, UnsignedTypes>(lib, "FloorMod");
  RegisterElementwiseFor<FloorModOp, FloatTypes>(lib, "FloorMod");
  RegisterTruncatingOps(lib);
}

}  // namespace thalweg::math
