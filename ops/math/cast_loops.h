// Conversions of elements from one plain type to another, as inner loops.
//
// Conversions that C++ leaves undefined have these results, whatever the processor: a float that does not fit int32 or
// int64 (NaN included) gives the lowest value; narrower integers saturate after that; what does not fit uint32 or uint64
// gives 2^31 or 2^63, negative values down to the lowest signed one wrap around. Complex numbers give their real part.
#pragma once

#include <array>
#include <complex>
#include <limits>
#include <type_traits>

#include "thalweg/ops/common/elementwise_loops.h"

namespace thalweg::math {

// Converts a floating value to Int if `fits`, else gives `otherwise`; never out of range for the C++ conversion.
template <typename Int, typename F>
THALWEG_INLINE Int ConvertIf(bool fits, F x, Int otherwise) {
  const Int converted = static_cast<Int>(fits ? x : F(0));
  return fits ? converted : otherwise;
}

template <typename To, typename F>
THALWEG_INLINE To FloatToInteger(F x) {
  if constexpr (sizeof(To) < 4) {
    const int32_t wide = FloatToInteger<int32_t>(x);
    constexpr int32_t lowest = std::numeric_limits<To>::lowest(), highest = std::numeric_limits<To>::max();
    return static_cast<To>(wide < lowest ? lowest : wide > highest ? highest : wide);
  } else if constexpr (std::is_same_v<To, int32_t>) {
    // Every float from -2^31 on and every double above -2^31 - 1 rounds towards zero into range.
    const bool above = std::is_same_v<F, float> ? x >= F(-0x1p31) : x > F(-0x1p31 - 1);
    return ConvertIf<int32_t>(above & (x < F(0x1p31)), x, std::numeric_limits<int32_t>::min());
  } else if constexpr (std::is_same_v<To, int64_t>) {
    return ConvertIf<int64_t>((x >= F(-0x1p63)) & (x < F(0x1p63)), x, std::numeric_limits<int64_t>::min());
  } else if constexpr (std::is_same_v<To, uint32_t>) {
    const bool fits = (x >= F(-0x1p31)) & (x < F(0x1p32));
    return static_cast<uint32_t>(ConvertIf<int64_t>(fits, x, int64_t{1} << 31));
  } else {
    const bool negative = x < F(0);
    const uint64_t magnitude = ConvertIf<uint64_t>(!negative & (x < F(0x1p64)), x, uint64_t{1} << 63);
    return negative ? static_cast<uint64_t>(FloatToInteger<int64_t>(x)) : magnitude;
  }
}

template <typename T> inline constexpr bool kIsComplex = false;
template <typename T> inline constexpr bool kIsComplex<std::complex<T>> = true;

template <typename To, typename From>
THALWEG_INLINE To ConvertElement(From x) {
  if constexpr (kIsComplex<From> && kIsComplex<To>) {
    using Part = typename To::value_type;
    return To(static_cast<Part>(x.real()), static_cast<Part>(x.imag()));
  } else if constexpr (kIsComplex<From>) {
    return ConvertElement<To>(x.real());
  } else if constexpr (kIsComplex<To>) {
    return To(static_cast<typename To::value_type>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return FloatToInteger<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <typename From, typename To>
THALWEG_CLONES void CastLoop(const void* const* in, const int64_t*, void* out, int64_t n, LoopState&) {
  const From* from = static_cast<const From*>(in[0]);
  To* to = static_cast<To*>(out);
  for (int64_t k = 0; k < n; ++k) to[k] = ConvertElement<To>(from[k]);
}

template <typename From, typename To>
inline constexpr ElementwiseDef kCast = {
    .loop = &CastLoop<From, To>, .num_inputs = 1, .input_types = {DTypeOf<From>::value}, .output_type = DTypeOf<To>::value};

// The definition that converts From, a computing type, to the computing type `to`; null if there is none.
template <typename From>
const ElementwiseDef* CastsFrom(DType to) {
  switch (to) {
    case DType::kBool: return &kCast<From, bool>;
    case DType::kInt8: return &kCast<From, int8_t>;
    case DType::kInt16: return &kCast<From, int16_t>;
    case DType::kInt32: return &kCast<From, int32_t>;
    case DType::kInt64: return &kCast<From, int64_t>;
    case DType::kUInt8: return &kCast<From, uint8_t>;
    case DType::kUInt16: return &kCast<From, uint16_t>;
    case DType::kUInt32: return &kCast<From, uint32_t>;
    case DType::kUInt64: return &kCast<From, uint64_t>;
    case DType::kFloat32: return &kCast<From, float>;
    case DType::kFloat64: return &kCast<From, double>;
    case DType::kComplex64: return &kCast<From, std::complex<float>>;
    case DType::kComplex128: return &kCast<From, std::complex<double>>;
    default: return nullptr;
  }
}

// The same by type, in three files because compilers take their time over them.
const ElementwiseDef* CastFromSigned(DType from, DType to);
const ElementwiseDef* CastFromUnsigned(DType from, DType to);  // bool as well
const ElementwiseDef* CastFromFloat(DType from, DType to);     // complex as well

}  // namespace thalweg::math
