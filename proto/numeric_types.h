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

// Rounds a float to a small format with `kExp` exponent and `kMan` mantissa bits (ties to even), subnormals included.
// Overflow gives infinity where the format has one (kInf), otherwise NaN.
template <int kExp, int kMan, bool kInf>
inline uint32_t FloatToSmall(float f) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr uint32_t kExpMask = ((1u << kExp) - 1) << kMan;
  constexpr uint32_t kNan = kInf ? (kExpMask | (1u << (kMan - 1))) : (kExpMask | ((1u << kMan) - 1));
  const uint32_t bits = FloatToBits(f);
  const uint32_t sign = (bits >> 31) << (kExp + kMan);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | kNan;
  if (magnitude == 0x7f800000u) return sign | (kInf ? kExpMask : kNan);
  const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;  // exponent field in the small format
  uint64_t mantissa = (magnitude & 0x7fffffu) | (magnitude >> 23 ? 0x800000u : 0u);
  int shift = 23 - kMan;
  uint32_t field = 0;
  if (exponent >= 1) {
    field = static_cast<uint32_t>(exponent - 1) << kMan;  // the implicit one of the mantissa adds the missing unit
  } else {
    shift += 1 - exponent;
    if (shift > 40) return sign;
  }
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t rest = mantissa & ((uint64_t{1} << shift) - 1);
  uint64_t rounded = mantissa >> shift;
  if (rest > half || (rest == half && (rounded & 1))) ++rounded;
  const uint64_t result = field + rounded;
  if (kInf ? result >= kExpMask : result >= kNan) return sign | (kInf ? kExpMask : kNan);
  return sign | static_cast<uint32_t>(result);
}

template <int kExp, int kMan, bool kInf>
inline float SmallToFloat(uint32_t v) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  constexpr uint32_t kManMask = (1u << kMan) - 1;
  constexpr uint32_t kExpMax = (1u << kExp) - 1;
  const uint32_t sign = (v >> (kExp + kMan)) << 31;
  const uint32_t exponent = (v >> kMan) & kExpMax;
  const uint32_t mantissa = v & kManMask;
  if (kInf && exponent == kExpMax) return BitsToFloat(sign | 0x7f800000u | (mantissa << (23 - kMan)));
  if (!kInf && exponent == kExpMax && mantissa == kManMask) return BitsToFloat(sign | 0x7fc00000u);
  if (exponent == 0) {
    const float f = std::ldexp(static_cast<float>(mantissa), 1 - kBias - kMan);
    return sign ? -f : f;
  }
  return BitsToFloat(sign | ((exponent - kBias + 127) << 23) | (mantissa << (23 - kMan)));
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
