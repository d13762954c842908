// The four operations as tensors mean them: integers wrap around, complex numbers follow the plain formulas.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "thalweg/ops/common/target_clones.h"

namespace thalweg::math {

// An unsigned type in which + - * of T neither overflow (in the C++ sense) nor are promoted to a signed type.
template <typename T>
using WrapT = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <typename T>
THALWEG_INLINE T WrappingAdd(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<WrapT<T>>(a) + static_cast<WrapT<T>>(b));
  else return a + b;
}

template <typename T>
THALWEG_INLINE T WrappingSub(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<WrapT<T>>(a) - static_cast<WrapT<T>>(b));
  else return a - b;
}

template <typename T>
THALWEG_INLINE T WrappingMul(T a, T b) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<WrapT<T>>(a) * static_cast<WrapT<T>>(b));
  else return a * b;
}
template <typename T>
THALWEG_INLINE std::complex<T> WrappingMul(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <typename T>
THALWEG_INLINE T WrappingNeg(T a) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(WrapT<T>{0} - static_cast<WrapT<T>>(a));
  else return -a;
}

// The function of Add, AddV2 and AddN.
struct AddOp {
  template <typename T> static T Apply(T a, T b) { return WrappingAdd(a, b); }
};

}  // namespace thalweg::math
