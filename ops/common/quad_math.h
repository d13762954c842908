// Functions of four floats at once that start from the processor's estimates of reciprocals, as TensorFlow's CPU kernels do;
// compilers cannot find those instructions by themselves. Without them (no SSE) the exact quotient serves instead, which
// differs in the last bit. Denormal arguments count as zero, as in elementwise kernels (L15).
//
// Files that include this header must be compiled without contraction of products and sums, as those of vector_math.h.
#pragma once

#include <cmath>
#include <cstdint>

#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/common/vector_math.h"

namespace thalweg::quad_math {

typedef float Quad __attribute__((vector_size(16)));
typedef int32_t QuadBits __attribute__((vector_size(16)));

// About twelve bits of 1 / x; infinite for zeros, zero for infinities.
THALWEG_INLINE Quad ReciprocalEstimate(Quad x) {
#if defined(__SSE__)
  return __builtin_ia32_rcpps(x);
#else
  return 1.0f / x;
#endif
}
THALWEG_INLINE Quad RsqrtEstimate(Quad x) {
#if defined(__SSE__)
  return __builtin_ia32_rsqrtps(x);
#else
  return 1.0f / Quad{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])};
#endif
}

// One step of Newton's iteration each; where it meets infinity times zero, the estimate is exact.
THALWEG_INLINE Quad Reciprocal(Quad x) {
  const Quad estimate = ReciprocalEstimate(x);
  const Quad error = 1.0f - x * estimate;
  return error == error ? estimate * error + estimate : estimate;
}
THALWEG_INLINE Quad Rsqrt(Quad x) {
  const Quad estimate = RsqrtEstimate(x);
  const Quad error = x * estimate * estimate + -1.0f;
  const Quad refined = estimate * -0.5f * error + estimate;
  return refined == refined ? refined : estimate;
}

THALWEG_INLINE Quad Atan(Quad x) {
  constexpr float kNumerator[] = {8.109951019287109375e-01f, 7.296695709228515625e-01f, 1.12026982009410858154296875e-01f};
  constexpr float kDenominator[] = {8.109951019287109375e-01f, 1.0f, 2.8318560123443603515625e-01f,
                                    1.00917108356952667236328125e-02f};
  const QuadBits sign = reinterpret_cast<QuadBits>(x) & INT32_MIN;
  const Quad magnitude = reinterpret_cast<Quad>(reinterpret_cast<QuadBits>(x) ^ sign);
  const QuadBits large = magnitude > 1.0f;
  const Quad reduced = large ? Reciprocal(magnitude) : magnitude;
  const Quad square = reduced * reduced;
  const Quad numerator = (kNumerator[2] * square + kNumerator[1]) * square + kNumerator[0];
  const Quad denominator = ((kDenominator[3] * square + kDenominator[2]) * square + kDenominator[1]) * square + kDenominator[0];
  const Quad of_reduced = reduced * (numerator / denominator);
  const Quad result = large ? 1.57079637f - of_reduced : of_reduced;
  return reinterpret_cast<Quad>(reinterpret_cast<QuadBits>(result) ^ sign);
}

}  // namespace thalweg::quad_math
