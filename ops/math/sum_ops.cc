// Sum, Mean, Prod.
#include <cstdint>
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/reduce_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// Integers add up modulo a power of two, so any unsigned type at least as wide will do; floats are carried as double.
template <typename T> struct SumOf { using type = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>; };
template <> struct SumOf<float> { using type = double; };
template <> struct SumOf<double> { using type = double; };
template <typename T> struct SumOf<std::complex<T>> { using type = std::complex<double>; };

// What a mean divides must not have wrapped around (L17), except at 64 bits.
template <typename T> struct MeanOf { using type = uint64_t; };
template <> struct MeanOf<float> { using type = double; };
template <> struct MeanOf<double> { using type = double; };
template <typename T> struct MeanOf<std::complex<T>> { using type = std::complex<double>; };

struct Addition {
  template <typename A> THALWEG_INLINE static A Identity() { return A(0); }
  template <typename A> THALWEG_INLINE static A Fold(A sum, A x) { return sum + x; }
};

struct SumOp : Addition {
  template <typename T> using Accumulator = typename SumOf<T>::type;
  template <typename T, typename A> static T Finish(A sum, int64_t) { return static_cast<T>(sum); }
};

struct MeanOp : Addition {
  template <typename T> using Accumulator = typename MeanOf<T>::type;
  template <typename T, typename A> static T Finish(A sum, int64_t n) {
    // As TensorFlow has it, the mean of nothing is NaN for real numbers and 0 for all others.
    if (!std::is_floating_point_v<T> && n == 0) return T(0);
    if constexpr (std::is_integral_v<T>) {
      using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
      return static_cast<T>(static_cast<Wide>(sum) / static_cast<Wide>(n));
    } else {
      return static_cast<T>(sum / static_cast<double>(n));
    }
  }
};

// Products overflow where the type does: floats are carried as they are.
template <typename T> struct ProductOf { using type = std::conditional_t<std::is_integral_v<T>, typename SumOf<T>::type, T>; };

struct ProdOp {
  template <typename T> using Accumulator = typename ProductOf<T>::type;
  template <typename A> THALWEG_INLINE static A Identity() { return A(1); }
  template <typename A> THALWEG_INLINE static A Fold(A product, A x) { return product * x; }
  template <typename T, typename A> static T Finish(A product, int64_t) { return static_cast<T>(product); }
};

template <typename Op>
void RegisterNumeric(OpLibrary& lib, const std::string& op) {
  lib.schemas.Add(op + "(input: T, reduction_indices: Tidx) -> output: T",
                  "keep_dims: bool = false; T: numbertype; Tidx: {int32, int64} = int32")
      .Shape(ReductionShape).Cost(ReductionCost);
  RegisterReduction<Op>(lib, op, FloatTypes());
  RegisterReduction<Op>(lib, op, SignedTypes());
  RegisterReduction<Op>(lib, op, UnsignedTypes());
  RegisterReduction<Op>(lib, op, ComplexTypes());
}

}  // namespace

void RegisterSumOps(OpLibrary& lib) {
  RegisterNumeric<SumOp>(lib, "Sum");
  RegisterNumeric<MeanOp>(lib, "Mean");
  RegisterNumeric<ProdOp>(lib, "Prod");
}

}  // namespace thalweg::math
