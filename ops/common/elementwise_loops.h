// From a function of one element to inner loops and kernels.
//
//   struct CubeOp {
//     template <typename T> static T Apply(T x) { return x * x * x; }
//   };
//   RegisterElementwiseFor<CubeOp, FloatTypes>(lib, "Cube");
//
// registers a kernel per storage type; each computing type is compiled once. Apply takes one, two or three operands of
// the computing type, and may return another type (comparisons return bool). An op may also have
//   template <std::same_as<float> T> static T ApplyRest(T x)   for the elements past the last whole group (kGroup)
//   template <std::same_as<float> T> static bool IsRare(T x)    with
//   template <std::same_as<float> T> static T ApplyRare(T x)    for values that Apply, free of branches, cannot serve
//   static quad_math::Quad ApplyToQuad(quad_math::Quad x)       in place of Apply(float): four elements at a time
//   static constexpr double kNanos = 2.0;               cost per element, if it is not simple arithmetic
//   static constexpr const char* kAttr = "alpha";        a float attribute, passed to Apply as last argument (double)
//   static constexpr bool kInStorageType = true;         half and bfloat16 are passed as they are, for ops where rounding
//                                                        between two steps shows (a quotient that is then rounded down)
//   static constexpr const char* kRefusal = "...";       with
//   template <typename T> static bool Refuses(T a, T b)   operands that make the execution fail; Apply must bear them
#pragma once

#include <algorithm>
#include <complex>
#include <concepts>
#include <cstring>
#include <type_traits>

#include "thalweg/ops/common/elementwise.h"
#include "thalweg/ops/common/quad_math.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

// The type that elements of T are computed in.
template <typename T> struct Computing { using type = T; };
template <> struct Computing<half> { using type = float; };
template <> struct Computing<bfloat16> { using type = float; };
template <> struct Computing<float8_e5m2> { using type = float; };
template <> struct Computing<float8_e4m3fn> { using type = float; };
template <> struct Computing<int4> { using type = int32_t; };
template <> struct Computing<uint4> { using type = int32_t; };
template <> struct Computing<qint8> { using type = int8_t; };
template <> struct Computing<quint8> { using type = uint8_t; };
template <> struct Computing<qint16> { using type = int16_t; };
template <> struct Computing<quint16> { using type = uint16_t; };
template <> struct Computing<qint32> { using type = int32_t; };
template <typename T> using ComputingT = typename Computing<T>::type;

namespace elementwise_internal {

template <typename Op>
concept HasAttr = requires { Op::kAttr; };
template <typename Op>
concept HasCost = requires { Op::kNanos; };
template <typename Op>
concept CanRefuse = requires { Op::kRefusal; };
template <typename Op>
concept InStorageType = requires { Op::kInStorageType; };

// The type whose loop serves elements of T.
template <typename Op, typename T>
using LoopT = std::conditional_t<InStorageType<Op>, T, ComputingT<T>>;

template <typename Op, typename T>
concept IsUnary = requires(T x, double param) { Op::Apply(x); } || (HasAttr<Op> && requires(T x, double param) { Op::Apply(x, param); });

template <typename Op, typename... Ts>
THALWEG_INLINE auto Call([[maybe_unused]] double param, Ts... operands) {
  if constexpr (HasAttr<Op>) return Op::Apply(operands..., param);
  else return Op::Apply(operands...);
}

template <typename Op, typename... Ts>
using Result = decltype(Call<Op>(0.0, std::declval<Ts>()...));

template <typename Op, typename... Ts>
concept HasRest = requires(Ts... operands) { Op::ApplyRest(operands...); };
template <typename Op, typename T>
concept HasRare = requires(T x) { Op::IsRare(x); };
template <typename Op, typename T>
concept HasQuad = std::is_same_v<T, float> && requires(quad_math::Quad x) { Op::ApplyToQuad(x); };

// In the loops below `ivdep` is true: out[k] may be the memory of in[k], never of another element.

template <typename Op, typename T>
THALWEG_CLONES void UnaryLoop(const void* const* in, const int64_t*, void* out, int64_t n, LoopState& state) {
  const T* a = static_cast<const T*>(in[0]);
  Result<Op, T>* o = static_cast<Result<Op, T>*>(out);
  const double param = state.param;
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) o[k] = Call<Op>(param, a[k]);
}

template <typename Op, typename T>
void UnaryRestLoop(const void* const* in, const int64_t*, void* out, int64_t n, LoopState&) {
  const T* a = static_cast<const T*>(in[0]);
  T* o = static_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) o[k] = Op::ApplyRest(a[k]);
}

// Blocks without rare values, nearly all, are computed as by UnaryLoop.
template <typename Op, typename T>
THALWEG_CLONES void RareUnaryLoop(const void* const* in, const int64_t*, void* out, int64_t n, LoopState&) {
  constexpr int64_t kBlock = 512;
  const T* a = static_cast<const T*>(in[0]);
  T* o = static_cast<T*>(out);
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, n);
    int rare = 0;
    for (int64_t k = begin; k < end; ++k) rare |= Op::IsRare(a[k]);
    if (rare) {
      for (int64_t k = begin; k < end; ++k) o[k] = Op::IsRare(a[k]) ? Op::ApplyRare(a[k]) : Op::Apply(a[k]);
    } else {
#pragma GCC ivdep
      for (int64_t k = begin; k < end; ++k) o[k] = Op::Apply(a[k]);
    }
  }
}

template <typename Op>
THALWEG_CLONES void QuadLoop(const void* const* in, const int64_t*, void* out, int64_t n, LoopState&) {
  constexpr int64_t kLanes = 4;
  const float* a = static_cast<const float*>(in[0]);
  float* o = static_cast<float*>(out);
  quad_math::Quad x{}, y;
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    std::memcpy(&x, a + k, sizeof(x));
    y = Op::ApplyToQuad(x);
    std::memcpy(o + k, &y, sizeof(y));
  }
  if (k == n) return;
  const size_t bytes = static_cast<size_t>(n - k) * sizeof(float);
  std::memcpy(&x, a + k, bytes);
  y = Op::ApplyToQuad(x);
  std::memcpy(o + k, &y, bytes);
}

template <typename Op, typename T>
void BinaryRestLoop(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState&) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* o = static_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) o[k] = Op::ApplyRest(a[k * strides[0]], b[k * strides[1]]);
}

template <typename Op, typename T>
THALWEG_CLONES void BinaryLoop(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState& state) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  Result<Op, T, T>* o = static_cast<Result<Op, T, T>*>(out);
  const double param = state.param;
  if (strides[0] != 0 && strides[1] != 0) {
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) o[k] = Call<Op>(param, a[k], b[k]);
  } else if (strides[0] != 0) {
    const T y = *b;
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) o[k] = Call<Op>(param, a[k], y);
  } else {
    const T x = *a;
    const int64_t step = strides[1];
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) o[k] = Call<Op>(param, x, b[k * step]);
  }
}

// For ops that may refuse operands: every element is looked at first, then computed.
template <typename Op, typename T>
THALWEG_CLONES void RefusingBinaryLoop(const void* const* in, const int64_t* strides, void* out, int64_t n,
                                       LoopState& state) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  T* o = static_cast<T*>(out);
  const int64_t step_a = strides[0], step_b = strides[1];
  bool refused = false;
  for (int64_t k = 0; k < n; ++k) {
    const T x = a[k * step_a], y = b[k * step_b];
    const bool bad = Op::Refuses(x, y);
    refused |= bad;
    o[k] = bad ? T(0) : Op::Apply(x, y);
  }
  state.refused |= refused;
}

template <typename Op>
constexpr ElementwiseDef BaseDef() {
  ElementwiseDef def;
  if constexpr (HasCost<Op>) def.nanos_per_element = Op::kNanos;
  if constexpr (HasAttr<Op>) def.param_attr = Op::kAttr;
  if constexpr (CanRefuse<Op>) def.refusal = Op::kRefusal;
  return def;
}

template <typename Op, typename T>
constexpr ElementwiseDef UnaryDef() {
  ElementwiseDef def = BaseDef<Op>();
  if constexpr (HasQuad<Op, T>) def.loop = &QuadLoop<Op>;
  else if constexpr (HasRare<Op, T>) def.loop = &RareUnaryLoop<Op, T>;
  else def.loop = &UnaryLoop<Op, T>;
  if constexpr (HasRest<Op, T>) def.rest = &UnaryRestLoop<Op, T>;
  def.num_inputs = 1;
  def.input_types[0] = DTypeOf<T>::value;
  def.output_type = DTypeOf<Result<Op, T>>::value;
  return def;
}

template <typename Op, typename T>
constexpr ElementwiseDef BinaryDef() {
  ElementwiseDef def = BaseDef<Op>();
  if constexpr (CanRefuse<Op>) def.loop = &RefusingBinaryLoop<Op, T>;
  else def.loop = &BinaryLoop<Op, T>;
  if constexpr (HasRest<Op, T, T>) def.rest = &BinaryRestLoop<Op, T>;
  def.num_inputs = 2;
  def.input_types[0] = def.input_types[1] = DTypeOf<T>::value;
  def.output_type = DTypeOf<Result<Op, T, T>>::value;
  return def;
}

template <typename Op, typename T>
constexpr ElementwiseDef DefOf() {
  if constexpr (IsUnary<Op, T>) return UnaryDef<Op, T>();
  else return BinaryDef<Op, T>();
}

template <typename Op, typename T>
inline constexpr ElementwiseDef kDef = DefOf<Op, T>();

}  // namespace elementwise_internal

// The definition of Op, which has one or two operands, for the computing type of T.
template <typename Op, typename T>
inline constexpr const ElementwiseDef& kElementwise = elementwise_internal::kDef<Op, elementwise_internal::LoopT<Op, T>>;

// Element types by the name they have in op tables.
template <typename... Ts> struct TypeList {};
using FloatTypes = TypeList<half, bfloat16, float, double>;
using SignedTypes = TypeList<int8_t, int16_t, int32_t, int64_t>;
using UnsignedTypes = TypeList<uint8_t, uint16_t, uint32_t, uint64_t>;
using ComplexTypes = TypeList<std::complex<float>, std::complex<double>>;
using QuantizedTypes = TypeList<qint8, quint8, qint16, quint16, qint32>;

// Adds a CPU kernel of `op` for each storage type in Ts, constrained on attribute T.
template <typename Op, typename... Ts>
void RegisterElementwise(OpLibrary& lib, absl::string_view op) {
  (lib.kernels.Add(op, "cpu", &MakeElementwise<elementwise_internal::kDef<Op, elementwise_internal::LoopT<Op, Ts>>>).template Type<Ts>("T"), ...);
}
template <typename Op, typename... Ts>
void RegisterElementwise(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  RegisterElementwise<Op, Ts...>(lib, op);
}
// The same for several lists: RegisterElementwiseFor<NegOp, FloatTypes, SignedTypes>(lib, "Neg").
template <typename Op, typename... Lists>
void RegisterElementwiseFor(OpLibrary& lib, absl::string_view op) {
  (RegisterElementwise<Op>(lib, op, Lists()), ...);
}

}  // namespace thalweg
