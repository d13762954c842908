// Exponential, logarithm and their kin for float and double, written so that compilers turn loops over them into vector
// code: no branches, no calls, no integer conversions that older vector units lack.
//
// Accuracy: a few units in the last place (tests/ops/vector_math_test.cc states the measured bounds). Special values are
// those of the C library; denormal arguments count as zero and denormal results may be zero, as in elementwise kernels
// (L15). Use inside THALWEG_CLONES loops; not for code that needs errno or floating-point flags.
//
// Polynomial coefficients are minimax fits (Remez) made for this file; the comment at each says over which interval.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "thalweg/ops/common/target_clones.h"

namespace thalweg::vector_math {

template <typename T> struct FloatFormat;
template <> struct FloatFormat<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kRounder = 0x1.8p23f;     // adding it leaves the nearest integer in the low bits
  static constexpr float kTwoToMantissa = 0x1p23f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // few bits, so that products with small integers are exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kExpMin = -104.0f, kExpMax = 89.0f;  // beyond, the exponential is 0 or infinite
  static constexpr float kExpNormal = -87.0f;      // from here on it is a normal number
  static constexpr float kTanhOne = 10.0f;         // from here on tanh rounds to 1
};
template <> struct FloatFormat<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kTwoToMantissa = 0x1p52;
  static constexpr double kLn2High = 0x1.62e42fefa38p-1;
  static constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kExpMin = -746.0, kExpMax = 710.0;
  static constexpr double kExpNormal = -708.0;
  static constexpr double kTanhOne = 20.0;
};

// c[0] + c[1] x + ... by Horner's rule.
template <typename T, int N>
THALWEG_INLINE T Polynomial(T x, const T (&c)[N]) {
  T sum = c[N - 1];
#pragma GCC unroll 16
  for (int i = N - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// The smaller of x and limit; NaN stays NaN.
template <typename T>
THALWEG_INLINE T AtMost(T x, T limit) { return x > limit ? limit : x; }
template <typename T>
THALWEG_INLINE T AtLeast(T x, T limit) { return x < limit ? limit : x; }

// 2^n, where `shifted` is n + kRounder and 2^n is a normal number.
template <typename T>
THALWEG_INLINE T PowerOfTwo(T shifted) {
  using F = FloatFormat<T>;
  using Bits = typename F::Bits;
  return std::bit_cast<T>(static_cast<Bits>((std::bit_cast<Bits>(shifted) + F::kBias) << F::kMantissaBits));
}

// x = n ln 2 + rest with |rest| <= ln(2) / 2.
template <typename T>
struct ExpParts {
  T n;
  T rest;
};
template <typename T>
THALWEG_INLINE ExpParts<T> SplitExp(T x) {
  using F = FloatFormat<T>;
  const T n = (x * T(1.4426950408889634) + F::kRounder) - F::kRounder;
  return {n, (x - n * F::kLn2High) - n * F::kLn2Low};
}

// exp(r) - 1 for |r| <= 0.35: r + r^2 q(r).
THALWEG_INLINE float SmallExpm1(float r) {
  constexpr float q[] = {0.500000003f, 0.166665734f, 0.0416663634f, 0.00836377637f, 0.00139421655f};
  return r + r * r * Polynomial(r, q);
}
THALWEG_INLINE double SmallExpm1(double r) {
  constexpr double q[] = {0.50000000000000011, 0.16666666666666675, 0.041666666666620629, 0.0083333333333212947,
                          0.0013888888918943089, 0.00019841269889351838, 2.4801518636247674e-5, 2.7557239244458533e-6,
                          2.7621340776233489e-7, 2.511120397630789e-8};
  return r + r * r * Polynomial(r, q);
}

template <typename T>
THALWEG_INLINE T Exp(T x) {
  using F = FloatFormat<T>;
  const ExpParts<T> parts = SplitExp(AtLeast(AtMost(x, F::kExpMax), F::kExpMin));
  // Two factors, because 2^n itself may be infinite or denormal where the result is not.
  const T half_n = parts.n * T(0.5) + F::kRounder;
  const T other_half = (parts.n - (half_n - F::kRounder)) + F::kRounder;
  return (T(1) + SmallExpm1(parts.rest)) * PowerOfTwo(half_n) * PowerOfTwo(other_half);
}

// For x in [-60, kExpMax]; NaN stays NaN.
template <typename T>
THALWEG_INLINE T BoundedExpm1(T x) {
  const ExpParts<T> parts = SplitExp(x);
  // 2^n would overflow before the result does.
  const T half_scale = PowerOfTwo((parts.n - T(1)) + FloatFormat<T>::kRounder);
  return (half_scale * SmallExpm1(parts.rest) + (half_scale - T(0.5))) * T(2);
}

template <typename T>
THALWEG_INLINE T Expm1(T x) {
  return BoundedExpm1(AtLeast(AtMost(x, FloatFormat<T>::kExpMax), T(-60)));  // below, the result is -1
}

// (atanh(s) / s - 1) / s^2 as a function of z = s^2, for s <= 0.1733: the series of the logarithm.
THALWEG_INLINE float AtanhTail(float z) {
  constexpr float p[] = {0.333333432f, 0.199941256f, 0.148014901f};
  return Polynomial(z, p);
}
THALWEG_INLINE double AtanhTail(double z) {
  constexpr double p[] = {0.33333333333333333, 0.20000000000000511, 0.14285714285358542, 0.11111111205496274,
                          0.090908968064510308, 0.0769317415995872, 0.06632952747789538, 0.065581046254577838};
  return Polynomial(z, p);
}

template <typename T>
THALWEG_INLINE T Log(T x) {
  using F = FloatFormat<T>;
  using Bits = typename F::Bits;
  constexpr Bits kRootHalf = std::bit_cast<Bits>(T(0.70710678118654752));
  constexpr Bits kMantissa = (Bits{1} << F::kMantissaBits) - 1;
  // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
  const Bits shifted = std::bit_cast<Bits>(x) + (std::bit_cast<Bits>(T(1)) - kRootHalf);
  const T m = std::bit_cast<T>(static_cast<Bits>((shifted & kMantissa) + kRootHalf));
  const Bits exponent = shifted >> F::kMantissaBits;
  const T e = std::bit_cast<T>(static_cast<Bits>(exponent | std::bit_cast<Bits>(F::kTwoToMantissa))) -
              (F::kTwoToMantissa + T(F::kBias));
  const T f = m - T(1);
  const T s = f / (T(2) + f);
  const T z = s * s;
  T result = e * F::kLn2High + (e * F::kLn2Low + (T(2) * s + T(2) * s * (z * AtanhTail(z))));
  const T kInfinity = std::numeric_limits<T>::infinity();
  result = x < kInfinity ? result : x;  // +infinity and NaN
  return x < std::numeric_limits<T>::min() ? (x < T(0) ? std::numeric_limits<T>::quiet_NaN() : -kInfinity) : result;
}

template <typename T>
THALWEG_INLINE T Log1p(T x) {
  const T sum = T(1) + x;
  const T lost = x - (sum - T(1));  // what rounding the sum dropped
  const T log = Log(sum);
  return sum < std::numeric_limits<T>::infinity() && sum > T(0) ? log + lost / sum : log;
}

template <typename T>
THALWEG_INLINE T Tanh(T x) {
  const T e = BoundedExpm1(T(2) * AtMost(std::fabs(x), FloatFormat<T>::kTanhOne));
  return std::copysign(e / (e + T(2)), x);
}

// Exp(-x) need not tell large results apart: from 2^n = infinity on, where the quotient is denormal, it is 0.
template <typename T>
THALWEG_INLINE T Sigmoid(T x) {
  using F = FloatFormat<T>;
  const ExpParts<T> parts = SplitExp(AtLeast(AtMost(-x, F::kExpMax), F::kExpNormal));
  return T(1) / (T(1) + (T(1) + SmallExpm1(parts.rest)) * PowerOfTwo(parts.n + F::kRounder));
}

// log(1 + exp(x)).
template <typename T>
THALWEG_INLINE T Softplus(T x) {
  return (x < T(0) ? T(0) : x) + Log1p(Exp(-std::fabs(x)));
}

THALWEG_INLINE float Erf(float x) {
  // erf(x) / x for |x| <= 1, in x^2.
  constexpr float small[] = {1.12837917f, -0.376126271f, 0.112836002f, -0.0268544449f,
                             0.00518953582f, -0.000802084528f, 7.88913209e-5f};
  // log2(1 - erf(x)) for x in [1, 3.93], close enough for 1 - 2^y; beyond, erf rounds to 1.
  constexpr float large[] = {-0.00385446264f, -1.61212289f, -0.944228053f, -0.127872035f, 0.0213203020f, -0.00165970566f};
  // 2^f for |f| <= 0.5.
  constexpr float power[] = {1.0f, 0.693147004f, 0.240222424f, 0.0555073358f, 0.00967151299f, 0.00132647273f};
  const float a = AtMost(std::fabs(x), 3.925f);
  const float near_zero = a * Polynomial(a * a, small);
  const float y = Polynomial(a, large);
  const float shifted = y + FloatFormat<float>::kRounder;
  const float f = y - (shifted - FloatFormat<float>::kRounder);
  const float tail = 1.0f - Polynomial(f, power) * PowerOfTwo(shifted);
  return std::copysign(a < 1.0f ? near_zero : tail, x);
}
THALWEG_INLINE double Erf(double x) { return std::erf(x); }

}  // namespace thalweg::vector_math
