// BitwiseAnd, BitwiseOr, BitwiseXor, Invert, LeftShift, RightShift, PopulationCount.
#include <bit>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct BitwiseAndOp {
  template <typename T> static T Apply(T a, T b) { return static_cast<T>(a & b); }
};
struct BitwiseOrOp {
  template <typename T> static T Apply(T a, T b) { return static_cast<T>(a | b); }
};
struct BitwiseXorOp {
  template <typename T> static T Apply(T a, T b) { return static_cast<T>(a ^ b); }
};
struct InvertOp {
  template <typename T> static T Apply(T a) { return static_cast<T>(~a); }
};

// Distances outside of the type's width count as the nearest one inside.
template <typename T>
THALWEG_INLINE int ShiftDistance(T by) {
  constexpr T kMost = static_cast<T>(sizeof(T) * 8 - 1);
  return static_cast<int>(by < T(0) ? T(0) : by > kMost ? kMost : by);
}
struct LeftShiftOp {
  template <typename T> static T Apply(T a, T by) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << ShiftDistance(by));
  }
};
struct RightShiftOp {
  template <typename T> static T Apply(T a, T by) { return static_cast<T>(a >> ShiftDistance(by)); }
};

struct PopulationCountOp {
  template <typename T> static uint8_t Apply(T a) {
    return static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
  }
};

constexpr char kIntegers[] = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

template <typename Op>
OpSchemaBuilder RegisterBinary(OpLibrary& lib, absl::string_view op) {
  RegisterElementwiseFor<Op, SignedTypes, UnsignedTypes>(lib, op);
  return lib.schemas.Add(absl::StrCat(op, "(x: T, y: T) -> z: T"), kIntegers).Shape(BroadcastShape).Cost(ElementwiseCost<1>);
}

template <typename Op>
void RegisterUnary(OpLibrary& lib, absl::string_view op, absl::string_view result) {
  RegisterElementwiseFor<Op, SignedTypes, UnsignedTypes>(lib, op);
  lib.schemas.Add(absl::StrCat(op, "(x: T) -> y: ", result), kIntegers).Shape(UnchangedShape).Cost(ElementwiseCost<1>);
}

}  // namespace

void RegisterBitwiseOps(OpLibrary& lib) {
  RegisterBinary<BitwiseAndOp>(lib, "BitwiseAnd").Commutative();
  RegisterBinary<BitwiseOrOp>(lib, "BitwiseOr").Commutative();
  RegisterBinary<BitwiseXorOp>(lib, "BitwiseXor").Commutative();
  RegisterBinary<LeftShiftOp>(lib, "LeftShift");
  RegisterBinary<RightShiftOp>(lib, "RightShift");
  RegisterUnary<InvertOp>(lib, "Invert", "T");
  RegisterUnary<PopulationCountOp>(lib, "PopulationCount", "uint8");
}

}  // namespace thalweg::math
