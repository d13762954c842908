// The power function for float, in the way of vector_math.h: free of branches, and to the bit what TensorFlow's CPU kernels
// compute. x^y = 2^(y log2 x), with the logarithm and its product with y carried as pairs of floats, so that large exponents
// do not make rounding errors large: within three units in the last place.
#pragma once

#include <cmath>
#include <limits>

#include "thalweg/ops/common/target_clones.h"
#include "thalweg/ops/common/vector_math.h"

namespace thalweg::vector_math {

// The sum of two floats that do not overlap.
struct FloatPair {
  float high;
  float low;
};

// x + y without error, for |x| >= |y|.
THALWEG_INLINE FloatPair ExactSum(float x, float y) {
  const float sum = x + y;
  return {sum, y - (sum - x)};
}

// The upper and the lower half of the bits of x.
THALWEG_INLINE FloatPair SplitBits(float x) {
  const float scaled = 4097.0f * x;
  const float high = (x - scaled) + scaled;
  return {high, x - high};
}

// x * y without error.
THALWEG_INLINE FloatPair ExactProduct(float x, float y) {
  const FloatPair a = SplitBits(x), b = SplitBits(y);
  const float product = x * y;
  float low = a.high * b.high - product;
  low = a.high * b.low + low;
  low = a.low * b.high + low;
  low = a.low * b.low + low;
  return {product, low};
}

THALWEG_INLINE FloatPair Sum(FloatPair x, FloatPair y) {
  const FloatPair sum = ExactSum(x.high, y.high);
  return ExactSum(sum.high, (y.low + sum.low) + x.low);
}

THALWEG_INLINE FloatPair Product(FloatPair x, float y) {
  const FloatPair product = ExactProduct(x.high, y);
  const FloatPair sum = ExactSum(product.high, x.low * y);
  return ExactSum(sum.high, sum.low + product.low);
}

// For x in [sqrt(1/2), sqrt(2)).
THALWEG_INLINE FloatPair Log2OfSignificand(float x) {
  constexpr double kFirst = 1.442695041742110273474963832995854318141937255859375;
  constexpr double kSecond = -0.72134751588268664068692714863573201000690460205078125;
  constexpr FloatPair first{static_cast<float>(kFirst), static_cast<float>(kFirst - static_cast<float>(kFirst))};
  constexpr FloatPair second{static_cast<float>(kSecond), static_cast<float>(kSecond - static_cast<float>(kSecond))};
  constexpr float higher[] = {4.8089790344238281250e-01f,      -3.6067414283752441406250e-01f, 2.8857553005218505859375e-01f,
                              -2.4046677350997924804687500e-01f, 2.0505344867706298828125e-01f,  -1.7892272770404815673828125e-01f,
                              1.7200836539268493652343750e-01f,  -1.68964862823486328125e-01f,   9.7010828554630279541015625e-02f};
  const float f = x - 1.0f;
  const FloatPair tail = Sum(second, ExactProduct(f, Polynomial(f, higher)));
  return Product(Sum(first, Product(tail, f)), f);
}

// The nearest integer, halves away from zero.
THALWEG_INLINE float RoundAway(float x) { return std::trunc(x + std::copysign(0x1.fffffep-2f, x)); }

// x^y for finite x > 0 and y whose product with log2 x does not overflow.
THALWEG_INLINE float PowOfPositive(float x, float y) {
  const Factors<float> factors = FactorsOf(x);
  const FloatPair power = Sum(ExactProduct(factors.exponent, y), Product(Log2OfSignificand(factors.significand), y));
  float n = RoundAway(power.high);
  float rest = (power.high - n) + power.low;
  const float more = RoundAway(rest);
  rest -= more;
  n += more;
  const FloatPair natural = ExactProduct(0.693147181f, rest);
  const float of_rest = Exp(natural.high) * (1.0f + natural.low);
  const PowerParts<float> scale = SplitPowerOfTwo(AtLeast(AtMost(n, 254.0f), -252.0f));
  return of_rest * scale.first * scale.second;
}

// Special values are those of the C library's function.
THALWEG_INLINE float Pow(float x, float y) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kHuge = 128 * 0.693147181f / std::numeric_limits<float>::epsilon();  // even 1 + epsilon overflows
  const float base = std::fabs(x), exponent = std::fabs(y);
  const bool is_integer = (std::floor(y) == y) & (exponent < kInfinity);
  const float half_y = y * 0.5f;
  const bool is_odd = is_integer & (RoundAway(half_y) != half_y);
  const bool falls = y < 0.0f;

  float result = PowOfPositive(base, y);
  result = (x < 0.0f) & !is_integer ? kNaN : result;
  result = x == 0.0f ? (falls ? kInfinity : 0.0f) : result;
  result = std::signbit(x) & is_odd ? -result : result;
  const float of_huge = (falls & (x == 0.0f)) | (falls != (base > 1.0f)) ? kInfinity : 0.0f;
  result = exponent >= kHuge ? (x == -1.0f ? 1.0f : of_huge) : result;
  const float of_infinity = falls ? 0.0f : kInfinity;
  result = base == kInfinity ? ((x < 0.0f) & is_odd ? -of_infinity : of_infinity) : result;
  result = (x != x) | (y != y) ? kNaN : result;
  return y == 1.0f ? x : ((x == 1.0f) | (y == 0.0f) ? 1.0f : result);
}

}  // namespace thalweg::vector_math
