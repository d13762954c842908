// From a few functions of one element to the loops of a reduction.
//
//   struct SumOp {
//     template <typename T> using Accumulator = ...;                        what is carried for elements of T
//     template <typename A> static A Identity();                           of nothing at all
//     template <typename A> static A Fold(A accumulator, A x);             associative; A is also a vector of accumulators
//     template <typename T, typename A> static T Finish(A sum, int64_t n); the result of n elements
//   };
// An op may also have
//     template <typename A> static A Map(A x);                             what is folded in place of element x
//     using InOrder = ...;                                                 an op that carries float as float, whose steps
//                                                                          are then done in TensorFlow's order where
//                                                                          elements are few (ordered_reduce.h)
//   RegisterReduction<SumOp>(lib, "Sum", FloatTypes());
#pragma once

#include <complex>
#include <cstring>
#include <type_traits>

#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/reduce.h"
#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/kernel_registry.h"

namespace thalweg {
namespace reduce_internal {

template <typename Op, typename T>
using AccumulatorOf = typename Op::template Accumulator<T>;

template <typename Op, typename A>
concept MapsElements = requires(A x) { Op::template Map<A>(x); };

template <typename Op, typename A>
THALWEG_INLINE A Mapped(A x) {
  if constexpr (MapsElements<Op, A>) return Op::template Map<A>(x);
  else return x;
}

template <typename Op, typename T>
void Init(void* accumulators, int64_t n) {
  using A = AccumulatorOf<Op, T>;
  A* a = static_cast<A*>(accumulators);
  for (int64_t k = 0; k < n; ++k) a[k] = Op::template Identity<A>();
}

template <typename Op, typename T>
THALWEG_CLONES void FoldColumns(const void* in, int64_t stride, void* accumulators, int64_t n) {
  using A = AccumulatorOf<Op, T>;
  const T* x = static_cast<const T*>(in);
  A* a = static_cast<A*>(accumulators);
  if (stride == 1) {
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) a[k] = Op::template Fold<A>(a[k], Mapped<Op>(static_cast<A>(x[k])));
  } else {
    for (int64_t k = 0; k < n; ++k) a[k] = Op::template Fold<A>(a[k], Mapped<Op>(static_cast<A>(x[k * stride])));
  }
}

// Vectors of 64 bytes of accumulators, which the compiler splits into what the processor has, and the elements for one.
template <typename A>
struct Lanes {
  typedef A Vector __attribute__((vector_size(64)));
  static constexpr int kCount = 64 / sizeof(A);
};
template <typename T, int kCount>
struct ElementsOf {
  typedef T Vector __attribute__((vector_size(sizeof(T) * kCount)));
};

template <typename Op, typename T>
THALWEG_CLONES void FoldRow(const void* in, int64_t n, void* accumulator) {
  using A = AccumulatorOf<Op, T>;
  const T* x = static_cast<const T*>(in);
  A result = *static_cast<A*>(accumulator);
  int64_t k = 0;
  if constexpr (std::is_arithmetic_v<A>) {
    using V = typename Lanes<A>::Vector;
    constexpr int kLanes = Lanes<A>::kCount;
    using Elements = typename ElementsOf<T, kLanes>::Vector;
    constexpr int kVectors = 4;  // independent sums hide the latency of an addition
    if (n >= kVectors * kLanes) {
      V sums[kVectors];
      for (V& sum : sums) sum = V{} + Op::template Identity<A>();
      for (; k + kVectors * kLanes <= n; k += kVectors * kLanes) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          Elements loaded;
          std::memcpy(&loaded, x + k + v * kLanes, sizeof(loaded));
          sums[v] = Op::template Fold<V>(sums[v], Mapped<Op>(__builtin_convertvector(loaded, V)));
        }
      }
      V sum = Op::template Fold<V>(Op::template Fold<V>(sums[0], sums[1]), Op::template Fold<V>(sums[2], sums[3]));
      for (int lane = 0; lane < kLanes; ++lane) result = Op::template Fold<A>(result, sum[lane]);
    }
  }
  for (; k < n; ++k) result = Op::template Fold<A>(result, Mapped<Op>(static_cast<A>(x[k])));
  *static_cast<A*>(accumulator) = result;
}

// The result of n elements as TensorFlow folds them: four interleaved vectors of eight, then single vectors, and the elements
// left over on their own.
template <typename Op>
THALWEG_CLONES float FoldLeaf(const float* x, int64_t n) {
  typedef float Vector __attribute__((vector_size(32)));
  constexpr int64_t kLanes = 8, kVectors = 4;
  Vector sums[kVectors];
  for (Vector& sum : sums) sum = Vector{} + Op::template Identity<float>();
  int64_t k = 0;
  if (n >= kVectors * kLanes) {
    for (; k + kVectors * kLanes <= n; k += kVectors * kLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        Vector loaded;
        std::memcpy(&loaded, x + k + v * kLanes, sizeof(loaded));
        sums[v] = Op::template Fold<Vector>(sums[v], Mapped<Op>(loaded));
      }
    }
    for (int v = 1; v < kVectors; ++v) sums[0] = Op::template Fold<Vector>(sums[0], sums[v]);
  }
  for (; k + kLanes <= n; k += kLanes) {
    Vector loaded;
    std::memcpy(&loaded, x + k, sizeof(loaded));
    sums[0] = Op::template Fold<Vector>(sums[0], Mapped<Op>(loaded));
  }
  float rest = Op::template Identity<float>();
  for (; k < n; ++k) rest = Op::template Fold<float>(rest, Mapped<Op>(x[k]));
  const auto fold = [](float a, float b) { return Op::template Fold<float>(a, b); };
  const Vector s = sums[0];
  return fold(rest, fold(fold(fold(s[0], s[4]), fold(s[2], s[6])), fold(fold(s[1], s[5]), fold(s[3], s[7]))));
}

// Long rows of sums by halves.
template <typename Op>
float FoldHalves(const float* x, int64_t n) {
  constexpr int64_t kLeaf = 8192, kVector = 8;
  if (n <= kLeaf || requires { Op::kInOnePiece; }) return FoldLeaf<Op>(x, n);
  const int64_t half = ((n + 1) / 2 + kVector - 1) / kVector * kVector;
  return Op::template Fold<float>(FoldHalves<Op>(x, half), FoldHalves<Op>(x + half, n - half));
}

template <typename Op>
void FoldRowInOrder(const void* in, int64_t n, void* accumulator) {
  *static_cast<float*>(accumulator) = FoldHalves<Op>(static_cast<const float*>(in), n);
}

template <typename Op, typename T>
void Merge(const void* from, void* into, int64_t n) {
  using A = AccumulatorOf<Op, T>;
  const A* f = static_cast<const A*>(from);
  A* a = static_cast<A*>(into);
  for (int64_t k = 0; k < n; ++k) a[k] = Op::template Fold<A>(a[k], f[k]);
}

template <typename Op, typename T>
void Finish(const void* accumulators, int64_t count, void* out, int64_t n) {
  using A = AccumulatorOf<Op, T>;
  const A* a = static_cast<const A*>(accumulators);
  T* o = static_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) o[k] = Op::template Finish<T>(a[k], count);
}

template <typename Op>
inline constexpr ReduceDef kOrderedDef = {.input_type = DType::kFloat32,
                                          .output_type = DType::kFloat32,
                                          .accumulator_bytes = sizeof(float),
                                          .init = &Init<Op, float>,
                                          .fold_columns = &FoldColumns<Op, float>,
                                          .fold_row = &FoldRowInOrder<Op>,
                                          .merge = &Merge<Op, float>,
                                          .finish = &Finish<Op, float>};

template <typename Op, typename T>
constexpr const ReduceDef* OrderedDef() {
  if constexpr (std::is_same_v<T, float> && requires { typename Op::InOrder; }) return &kOrderedDef<typename Op::InOrder>;
  else return nullptr;
}

template <typename Op, typename T>
inline constexpr ReduceDef kDef = {.input_type = DTypeOf<T>::value,
                                   .output_type = DTypeOf<T>::value,
                                   .accumulator_bytes = sizeof(AccumulatorOf<Op, T>),
                                   .maps_elements = MapsElements<Op, AccumulatorOf<Op, T>>,
                                   .init = &Init<Op, T>,
                                   .fold_columns = &FoldColumns<Op, T>,
                                   .fold_row = &FoldRow<Op, T>,
                                   .merge = &Merge<Op, T>,
                                   .finish = &Finish<Op, T>,
                                   .in_order = OrderedDef<Op, T>()};

}  // namespace reduce_internal

// Adds a CPU kernel of `op` for each storage type in Ts, constrained on attribute T.
template <typename Op, typename... Ts>
void RegisterReduction(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (AddReduction(lib, op, &MakeReduce<reduce_internal::kDef<Op, ComputingT<Ts>>>).template Type<Ts>("T"), ...);
}

}  // namespace thalweg
