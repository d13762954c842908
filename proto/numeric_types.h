// Element types that C++20 lacks: half, bfloat16, the float8 and 4-bit formats, and the quantized integers.
//
// Each is a trivially copyable struct of its storage bits. The floating ones convert to float exactly and from float
// with round-to-nearest-even; arithmetic is done in float and rounded once per operation, as TensorFlow's CPU kernels
// do.
// The quantized integers are distinct types so that kernels and dtype traits can tell them from plain integers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace thalweg {

namespace numeric_internal {
inline float BitsToFloat(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
inline uint32_t FloatToBits(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return bits;
}

// A small format has a sign, `kExp` exponent and `kMan` mantissa bits; kInf says whether its highest exponent stands
// for infinity and NaN (otherwise its highest code is NaN). Neither function below meets a float denormal that matters,
// so both are exact whether or not the processor flushes denormals, and both are free of loops and calls.

// Rounds to nearest, ties to even, subnormals included. Overflow gives infinity where the format has one, else NaN.
template <int kExp, int kMan, bool kInf>
inline uint32_t FloatToSmall(float f) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr int kShift = 23 - kMan;
  constexpr uint32_t kExpMask = ((1u << kExp) - 1) << kMan;
  constexpr uint32_t kNan = kInf ? (kExpMask | (1u << (kMan - 1))) : (kExpMask | ((1u << kMan) - 1));
  constexpr uint32_t kOverflow = kInf ? kExpMask : kNan;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
  constexpr uint32_t kSmallestNormal = kRebias + (1u << 23);
  // The float whose last mantissa bit weighs as much as the last bit of a subnormal: adding it rounds there.
  constexpr uint32_t kSubnormalUnit = static_cast<uint32_t>(127 - kBias + 1 + kShift) << 23;
  const uint32_t bits = FloatToBits(f);
  const uint32_t sign = (bits >> 31) << (kExp + kMan);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t odd = (magnitude >> kShift) & 1;
  const uint32_t normal = (magnitude - kRebias + (1u << (kShift - 1)) - 1 + odd) >> kShift;
  const uint32_t subnormal = FloatToBits(BitsToFloat(magnitude) + BitsToFloat(kSubnormalUnit)) - kSubnormalUnit;
  const uint32_t rounded = magnitude < kSmallestNormal ? subnormal : normal;
  const uint32_t finite = magnitude >= 0x7f800000u || rounded >= kOverflow ? kOverflow : rounded;
  return sign | (magnitude > 0x7f800000u ? kNan : finite);
}

template <int kExp, int kMan, bool kInf>
inline float SmallToFloat(uint32_t v) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr int kShift = 23 - kMan;
  constexpr uint32_t kManMask = (1u << kMan) - 1;
  constexpr uint32_t kExpMax = (1u << kExp) - 1;
  constexpr uint32_t kRebias = static_cast<uint32_t>(127 - kBias) << 23;
  constexpr uint32_t kSmallestNormal = kRebias + (1u << 23);
  const uint32_t sign = (v >> (kExp + kMan)) << 31;
  const uint32_t magnitude = (v & (kExpMax << kMan | kManMask)) << kShift;
  // A subnormal is a normal number of the smallest exponent less the one that its mantissa does not have.
  const uint32_t subnormal = FloatToBits(BitsToFloat(kSmallestNormal + magnitude) - BitsToFloat(kSmallestNormal));
  uint32_t result = magnitude < (1u << 23) ? subnormal : magnitude + kRebias;
  if (kInf) {
    if (magnitude >= kExpMax << 23) result = magnitude | 0x7f800000u;
  } else if (magnitude == (kExpMax << 23 | kManMask << kShift)) {
    result = 0x7fc00000u;
  }
  return BitsToFloat(sign | result);
}
}  // namespace numeric_internal

#define THALWEG_FLOAT_OPERATORS_(T)                                                              \
  friend T operator+(T a, T b) { return T(float(a) + float(b)); }                               \
  friend T operator-(T a, T b) { return T(float(a) - float(b)); }                               \
  friend T operator*(T a, T b) { return T(float(a) * float(b)); }                               \
  friend T operator/(T a, T b) { return T(float(a) / float(b)); }                               \
  friend T operator-(T a) { return T(-float(a)); }                                              \
  friend bool operator==(T a, T b) { return float(a) == float(b); }                             \
  friend bool operator!=(T a, T b) { return float(a) != float(b); }                             \
  friend bool operator<(T a, T b) { return float(a) < float(b); }                               \
  friend bool operator<=(T a, T b) { return float(a) <= float(b); }                             \
  friend bool operator>(T a, T b) { return float(a) > float(b); }                               \
  friend bool operator>=(T a, T b) { return float(a) >= float(b); }                             \
  T& operator+=(T b) { return *this = *this + b; }                                              \
  T& operator-=(T b) { return *this = *this - b; }                                              \
  T& operator*=(T b) { return *this = *this * b; }                                              \
  T& operator/=(T b) { return *this = *this / b; }

struct half {
  uint16_t bits = 0;
  half() = default;
  explicit half(float f) : bits(static_cast<uint16_t>(numeric_internal::FloatToSmall<5, 10, true>(f))) {}
  static half FromBits(uint16_t b) { half h; h.bits = b; return h; }
  explicit operator float() const { return numeric_internal::SmallToFloat<5, 10, true>(bits); }
  THALWEG_FLOAT_OPERATORS_(half)
};

struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float f) {
    const uint32_t u = numeric_internal::FloatToBits(f);
    bits = (u & 0x7fffffffu) > 0x7f800000u ? static_cast<uint16_t>((u >> 31) << 15 | 0x7fc0u)
                                           : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
  }
  static bfloat16 FromBits(uint16_t b) { bfloat16 h; h.bits = b; return h; }
  explicit operator float() const { return numeric_internal::BitsToFloat(static_cast<uint32_t>(bits) << 16); }
  THALWEG_FLOAT_OPERATORS_(bfloat16)
};

struct float8_e5m2 {
  uint8_t bits = 0;
  float8_e5m2() = default;
  explicit float8_e5m2(float f) : bits(static_cast<uint8_t>(numeric_internal::FloatToSmall<5, 2, true>(f))) {}
  static float8_e5m2 FromBits(uint8_t b) { float8_e5m2 h; h.bits = b; return h; }
  explicit operator float() const { return numeric_internal::SmallToFloat<5, 2, true>(bits); }
  THALWEG_FLOAT_OPERATORS_(float8_e5m2)
};

struct float8_e4m3fn {
  uint8_t bits = 0;
  float8_e4m3fn() = default;
  explicit float8_e4m3fn(float f) : bits(static_cast<uint8_t>(numeric_internal::FloatToSmall<4, 3, false>(f))) {}
  static float8_e4m3fn FromBits(uint8_t b) { float8_e4m3fn h; h.bits = b; return h; }
  explicit operator float() const { return numeric_internal::SmallToFloat<4, 3, false>(bits); }
  THALWEG_FLOAT_OPERATORS_(float8_e4m3fn)
};
#undef THALWEG_FLOAT_OPERATORS_

// 4-bit integers, one per byte in memory; the value sits in the low four bits, sign-extended for int4.
struct int4 {
  int8_t bits = 0;
  int4() = default;
  explicit int4(int v) : bits(static_cast<int8_t>(static_cast<int8_t>(static_cast<uint8_t>(v) << 4) >> 4)) {}
  explicit operator int() const { return bits; }
  friend bool operator==(int4 a, int4 b) { return a.bits == b.bits; }
};
struct uint4 {
  uint8_t bits = 0;
  uint4() = default;
  explicit uint4(int v) : bits(static_cast<uint8_t>(v & 15)) {}
  explicit operator int() const { return bits; }
  friend bool operator==(uint4 a, uint4 b) { return a.bits == b.bits; }
};

#define THALWEG_QUANTIZED_(NAME, STORAGE)                                     \
  struct NAME {                                                               \
    STORAGE value = 0;                                                        \
    NAME() = default;                                                         \
    explicit NAME(STORAGE v) : value(v) {}                                    \
    explicit operator STORAGE() const { return value; }                       \
    friend bool operator==(NAME a, NAME b) { return a.value == b.value; }     \
    friend bool operator!=(NAME a, NAME b) { return a.value != b.value; }     \
    friend bool operator<(NAME a, NAME b) { return a.value < b.value; }       \
  };
THALWEG_QUANTIZED_(qint8, int8_t)
THALWEG_QUANTIZED_(quint8, uint8_t)
THALWEG_QUANTIZED_(qint16, int16_t)
THALWEG_QUANTIZED_(quint16, uint16_t)
THALWEG_QUANTIZED_(qint32, int32_t)
#undef THALWEG_QUANTIZED_

}  // namespace thalweg
