// Exponential, logarithm, sine and their kin for float and double, written so that compilers turn loops over them into
// vector code: no branches, no calls, no integer conversions that older vector units lack.
//
// The float functions give TensorFlow's bits: they take the steps that TensorFlow's CPU kernels take for all elements but
// the last few (elementwise_loops.h, ApplyRest), each rounded on its own. Files that include this header for them must be
// compiled without contraction of products and sums (-ffp-contract=off). The double functions are our own; their polynomials
// are minimax fits (Remez) made for this file, the comment at each says over which interval.
//
// Accuracy: a few units in the last place (tests/ops/vector_math_test.cc states the measured bounds). Special values are
// those of the C library; denormal arguments count as zero and denormal results may be zero, as in elementwise kernels
// (L15). Use inside THALWEG_CLONES loops; not for code that needs errno or floating-point flags.
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
};
template <> struct FloatFormat<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kRounder = 0x1.8p52;
  static constexpr double kTwoToMantissa = 0x1p52;
  static constexpr double kLn2High = 0x1.62e42fefa38p-1;  // few bits, so that products with small integers are exact
  static constexpr double kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kExpMin = -746.0, kExpMax = 710.0;  // beyond, the exponential is 0 or infinite
  static constexpr double kExpNormal = -708.0;     // from here on it is a normal number
  static constexpr double kTanhOne = 20.0;         // from here on tanh rounds to 1
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

// 2^n for an integer n that need not be the exponent of a normal number, as two factors that are.
template <typename T>
struct PowerParts {
  T first;
  T second;
};
template <typename T>
THALWEG_INLINE PowerParts<T> SplitPowerOfTwo(T n) {
  using F = FloatFormat<T>;
  const T half_n = n * T(0.5) + F::kRounder;
  return {PowerOfTwo(half_n), PowerOfTwo((n - (half_n - F::kRounder)) + F::kRounder)};
}

// x = n ln 2 + rest, n the integer nearest to x / ln 2 (the upper of two).
struct FloatExpParts {
  float n;
  float rest;
};
THALWEG_INLINE FloatExpParts SplitFloatExp(float x) {
  const float n = std::floor(x * 1.44269504f + 0.5f);
  return {n, n * 2.12194440e-4f + (n * -0.693359375f + x)};
}

THALWEG_INLINE float Exp(float x) {
  const float bounded = AtLeast(AtMost(x, 88.723f), -104.0f);
  const FloatExpParts parts = SplitFloatExp(bounded);
  const float r = parts.rest, r2 = r * r;
  // Even and odd powers apart.
  const float even = r2 * (r2 * 1.37449637986719608306884765625e-3f + 4.166965186595916748046875e-2f) +
                     0.49999988079071044921875f;
  const float odd = r2 * 8.36894474923610687255859375e-3f + 0.16666518151760101318359375f;
  const float power = r2 * (r * odd + even) + (r + 1.0f);
  const PowerParts<float> scale = SplitPowerOfTwo(parts.n);
  const float result = power * scale.first * scale.second;
  return x < -104.0f ? 0.0f : (x < std::numeric_limits<float>::infinity() ? result : x);
}

// Of normal numbers: x = 2^exponent * significand, with the significand in [sqrt(1/2), sqrt(2)).
template <typename T>
struct Factors {
  T exponent;
  T significand;
};
template <typename T>
THALWEG_INLINE Factors<T> FactorsOf(T x) {
  using F = FloatFormat<T>;
  using Bits = typename F::Bits;
  constexpr Bits kRootHalf = std::bit_cast<Bits>(T(0.70710678118654752));
  constexpr Bits kMantissa = (Bits{1} << F::kMantissaBits) - 1;
  const Bits shifted = std::bit_cast<Bits>(x) + (std::bit_cast<Bits>(T(1)) - kRootHalf);
  const Bits exponent = shifted >> F::kMantissaBits;
  return {std::bit_cast<T>(static_cast<Bits>(exponent | std::bit_cast<Bits>(F::kTwoToMantissa))) -
              (F::kTwoToMantissa + T(F::kBias)),
          std::bit_cast<T>(static_cast<Bits>((shifted & kMantissa) + kRootHalf))};
}

THALWEG_INLINE float Log(float x) {
  constexpr float numerator[] = {1.0000000190281136f, 1.0000000190281063f, 0.18256296349849254f};
  constexpr float denominator[] = {1.0f, 1.4999999999999927f, 0.59923249590823520f, 0.049616247954120038f};
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Factors<float> factors = FactorsOf(x);
  const float f = factors.significand - 1.0f;
  const float result = factors.exponent * 0.693147181f + f * Polynomial(f, numerator) / Polynomial(f, denominator);
  const float bounded = x < kInfinity ? result : x;  // +infinity and NaN
  const float of_low = x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : -kInfinity;
  return x < std::numeric_limits<float>::min() ? of_low : bounded;
}

// What is lost in 1 + x is made good by the quotient of x and what is left of it.
THALWEG_INLINE float Log1p(float x) {
  const float sum = x + 1.0f;
  const float log = Log(sum);
  const float result = x * (log / (sum - 1.0f));
  return (sum == 1.0f) | (sum == log) ? x : result;
}

THALWEG_INLINE float Expm1(float x) {
  const float e = Exp(x);
  const float difference = e - 1.0f;
  const float log = Log(e);
  const float finite = log == e ? e : difference * (x / log);
  return e == 1.0f ? x : (difference == -1.0f ? -1.0f : finite);
}

// log(1 + exp(x)), given exp(x) and log1p(exp(x)), which serves only where neither x nor its exponential is the result to
// the last bit.
THALWEG_INLINE float SoftplusOf(float x, float exp, float log1p) {
  constexpr float kEnough = 13.9423847f;  // 2 less than -log(epsilon)
  return x > kEnough ? x : (x < -kEnough ? exp : log1p);
}
THALWEG_INLINE float Softplus(float x) {
  const float e = Exp(x);
  return SoftplusOf(x, e, Log1p(e));
}

THALWEG_INLINE float Tanh(float x) {
  constexpr float numerator[] = {1.340216100e-1f, 3.520756727e-3f, 2.102733560e-5f, 1.394553628e-8f};
  constexpr float denominator[] = {1.0f, 4.673548340e-1f, 2.597254514e-2f, 3.326951409e-4f, 8.015776984e-7f};
  constexpr float kOne = 7.90738964080810547f;  // from here on the quotient is 1
  const float bounded = AtLeast(AtMost(x, kOne), -kOne);
  const float square = bounded * bounded;
  return (square * bounded * Polynomial(square, numerator) + bounded) / Polynomial(square, denominator);
}

// By the square of exp(x / 2).
THALWEG_INLINE float Sigmoid(float x) {
  const float bounded = AtLeast(AtMost(x, 16.6355324f), -104.0f);  // from the greater on, the quotient is 1
  const FloatExpParts parts = SplitFloatExp(bounded * 0.5f);
  const float r = parts.rest, r2 = r * r;
  const float even = r2 * 4.1898667812347412109375e-2f + 0.49999141693115234375f;
  const float odd = r2 * 8.33471305668354034423828125e-3f + 0.16666877269744873046875f;
  const float root = (r2 * (r * odd + even) + (r + 1.0f)) * PowerOfTwo(parts.n + FloatFormat<float>::kRounder);
  const float e = root * root;
  return x < -104.0f ? 0.0f : e / (1.0f + e);
}

THALWEG_INLINE float Erf(float x) {
  constexpr float numerator[] = {1.128379106521606445312500000000000000e+00f, 1.874160766601562500000000000000000000e-01f,
                                 5.243302136659622192382812500000000000e-02f, 3.658048342913389205932617187500000000e-03f,
                                 2.861979592125862836837768554687500000e-04f, 2.123732201653183437883853912353515625e-06f};
  constexpr float denominator[] = {1.0f, 4.99425798654556274414062500000e-01f, 1.12945675849914550781250000000e-01f,
                                   1.47520881146192550659179687500e-02f, 1.14329601638019084930419921875e-03f,
                                   3.89185734093189239501953125000e-05f};
  const float square = AtMost(x * x, 16.0f);
  const float quotient = x * Polynomial(square, numerator) / Polynomial(square, denominator);
  return AtLeast(AtMost(quotient, 1.0f), -1.0f);
}

// |x| = n pi/2 + rest, for |x| < kGreatestTurn; `turns` holds n in its low bits.
struct Turn {
  uint32_t turns;
  float rest;
};
inline constexpr float kGreatestSineTurn = 25966.0f, kGreatestCosineTurn = 18838.0f;
THALWEG_INLINE Turn SplitTurn(float x) {
  constexpr float kRounder = FloatFormat<float>::kRounder;
  const float magnitude = std::fabs(x);
  const float shifted = magnitude * 0.636619746685028076171875f + kRounder;
  const float n = shifted - kRounder;
  float rest = n * -1.5703125f + magnitude;
  rest = n * -0.000483989715576171875f + rest;
  rest = n * 1.62865035235881805419921875e-07f + rest;
  rest = n * 5.5644315544167710640977020375430583953857421875e-11f + rest;
  return {std::bit_cast<uint32_t>(shifted), rest};
}
// The same for greater finite x, one at a time.
Turn SplitGreatTurn(float x);

// Sine (or cosine) from the parts of x: one polynomial each for |rest| <= pi/4, chosen by the quarter of the turn.
template <bool kCosine>
THALWEG_INLINE float SineOfTurn(float x, Turn turn) {
  constexpr float even[] = {1.0f, -0.5f, 0.041666619479656219482421875f, -0.00138865201734006404876708984375f,
                            2.4372266125283204019069671630859375e-05f};
  constexpr float odd[] = {-0.166666620398229825f, 0.00833268736556168517f, -0.000195923411408370285f};
  constexpr uint32_t kSign = 0x80000000;
  const float r = turn.rest, square = r * r;
  const float cosine = Polynomial(square, even);
  const float sine = Polynomial(square, odd) * square * r + r;
  const uint32_t sign = kCosine ? (turn.turns + 1) << 30 : std::bit_cast<uint32_t>(x) ^ (turn.turns << 30);
  const float magnitude = ((turn.turns & 1) != 0) == kCosine ? sine : cosine;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) ^ (sign & kSign));
}

THALWEG_INLINE float Asin(float x) {
  constexpr float p[] = {1.00000011920928955078125f, 0.16664917767047882080078125f, 7.550220191478729248046875e-2f,
                         3.95139865577220916748046875e-2f, 5.08838854730129241943359375e-2f};
  const float magnitude = std::fabs(x);
  const bool large = magnitude > 0.5f;
  const float root = std::sqrt(0.5f - 0.5f * magnitude);
  const float reduced = large ? root : magnitude;
  const float of_reduced = Polynomial(reduced * reduced, p) * reduced;
  return std::copysign(large ? 1.57079637f - 2.0f * of_reduced : of_reduced, x);
}

THALWEG_INLINE float Acos(float x) {
  const float magnitude = std::fabs(x), square = x * x;
  float even = 2.36423197202384471893310546875e-3f * square + 2.717843465507030487060546875e-2f;
  float odd = -1.1368644423782825469970703125e-2f * square - 4.8969544470310211181640625e-2f;
  even = even * square + 8.8804088532924652099609375e-2f;
  odd = odd * square - 0.214591205120086669921875f;
  even = even * square + 1.57079637050628662109375f;
  const float result = std::sqrt(1.0f - magnitude) * (odd * magnitude + even);
  return std::signbit(x) ? 3.14159274f - result : result;
}

THALWEG_INLINE float Atanh(float x) {
  constexpr float p[] = {0.3333373963832855224609375f, 0.1997792422771453857421875f, 0.14672131836414337158203125f,
                         8.2311116158962249755859375e-2f, 0.1819281280040740966796875f};
  const float square = x * x;
  const float small = x * square * Polynomial(square, p) + x;
  const float large = 0.5f * Log((1.0f + x) / (1.0f - x));
  const float inside = std::fabs(x) >= 0.5f ? large : small;
  const float magnitude = std::fabs(x);
  const float at_one = std::copysign(std::numeric_limits<float>::infinity(), x);
  return magnitude == 1.0f ? at_one : (magnitude > 1.0f ? std::numeric_limits<float>::quiet_NaN() : inside);
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
  const PowerParts<T> scale = SplitPowerOfTwo(parts.n);
  return (T(1) + SmallExpm1(parts.rest)) * scale.first * scale.second;
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
THALWEG_INLINE double AtanhTail(double z) {
  constexpr double p[] = {0.33333333333333333, 0.20000000000000511, 0.14285714285358542, 0.11111111205496274,
                          0.090908968064510308, 0.0769317415995872, 0.06632952747789538, 0.065581046254577838};
  return Polynomial(z, p);
}

template <typename T>
THALWEG_INLINE T Log(T x) {
  using F = FloatFormat<T>;
  const Factors<T> factors = FactorsOf(x);
  const T e = factors.exponent;
  const T f = factors.significand - T(1);
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

THALWEG_INLINE double Erf(double x) { return std::erf(x); }

}  // namespace thalweg::vector_math
