// Max, Min, All, Any.
#include <limits>
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/reduce_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// The lowest and highest value of a type, infinities included.
template <typename A>
constexpr A Lowest() {
  return std::numeric_limits<A>::has_infinity ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
}
template <typename A>
constexpr A Highest() {
  return std::numeric_limits<A>::has_infinity ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
}

// NaN wins wherever it stands (L18): `x != x` holds for NaN only, and nothing is greater than a NaN carried along.
struct MaxOp {
  template <typename T> using Accumulator = T;
  template <typename A> THALWEG_INLINE static A Identity() { return Lowest<A>(); }
  template <typename A> THALWEG_INLINE static A Fold(A highest, A x) { return (x > highest) | (x != x) ? x : highest; }
  template <typename T, typename A> static T Finish(A highest, int64_t) { return highest; }
};

struct MinOp {
  template <typename T> using Accumulator = T;
  template <typename A> THALWEG_INLINE static A Identity() { return Highest<A>(); }
  template <typename A> THALWEG_INLINE static A Fold(A lowest, A x) { return (x < lowest) | (x != x) ? x : lowest; }
  template <typename T, typename A> static T Finish(A lowest, int64_t) { return lowest; }
};

// Booleans are bytes of 0 or 1.
struct AllOp {
  template <typename T> using Accumulator = uint8_t;
  template <typename A> THALWEG_INLINE static A Identity() { return 1; }
  template <typename A> THALWEG_INLINE static A Fold(A all, A x) { return static_cast<A>(all & x); }
  template <typename T, typename A> static T Finish(A all, int64_t) { return all; }
};

struct AnyOp {
  template <typename T> using Accumulator = uint8_t;
  template <typename A> THALWEG_INLINE static A Identity() { return 0; }
  template <typename A> THALWEG_INLINE static A Fold(A any, A x) { return static_cast<A>(any | x); }
  template <typename T, typename A> static T Finish(A any, int64_t) { return any; }
};

template <typename Op>
void RegisterExtremum(OpLibrary& lib, const std::string& op) {
  lib.schemas.Add(op + "(input: T, reduction_indices: Tidx) -> output: T",
                  "keep_dims: bool = false; T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
                  "uint64, qint8, quint8, qint32, qint16, quint16}; Tidx: {int32, int64} = int32")
      .Shape(ReductionShape).Cost(ReductionCost);
  RegisterReduction<Op>(lib, op, FloatTypes());
  RegisterReduction<Op>(lib, op, SignedTypes());
  RegisterReduction<Op>(lib, op, UnsignedTypes());
}

constexpr ReduceDef OnBooleans(ReduceDef def) {
  def.input_type = def.output_type = DType::kBool;
  return def;
}
constexpr ReduceDef kAll = OnBooleans(reduce_internal::kDef<AllOp, uint8_t>);
constexpr ReduceDef kAny = OnBooleans(reduce_internal::kDef<AnyOp, uint8_t>);

template <const ReduceDef& def>
void RegisterBoolean(OpLibrary& lib, const std::string& op) {
  lib.schemas.Add(op + "(input: bool, reduction_indices: Tidx) -> output: bool",
                  "keep_dims: bool = false; Tidx: {int32, int64} = int32")
      .Shape(ReductionShape).Cost(ReductionCost);
  AddReduction(lib, op, &MakeReduce<def>);
}

}  // namespace

void RegisterMaxOps(OpLibrary& lib) {
  RegisterExtremum<MaxOp>(lib, "Max");
  RegisterExtremum<MinOp>(lib, "Min");
  RegisterBoolean<kAll>(lib, "All");
  RegisterBoolean<kAny>(lib, "Any");
}

}  // namespace thalweg::math
