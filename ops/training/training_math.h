// Square roots and the like for every element type of the training ops: half and bfloat16 round once per operation.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>

#include "thalweg/proto/numeric_types.h"

namespace thalweg::training {

template <typename T>
constexpr bool kIsSmallFloat = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

// Applies a function of float to a small float, and of T to any other.
template <typename T, typename Fn>
T Lifted(T x, Fn fn) {
  if constexpr (kIsSmallFloat<T>) return T(static_cast<float>(fn(static_cast<float>(x))));
  else return fn(x);
}

template <typename T>
T Sqrt(T x) {
  return Lifted(x, [](auto v) { return std::sqrt(v); });
}
template <typename T>
T Exp(T x) {
  return Lifted(x, [](auto v) { return std::exp(v); });
}
template <typename T>
T Square(T x) {
  return x * x;
}
template <typename T>
T Abs(T x) {
  return Lifted(x, [](auto v) { return std::abs(v); });
}
template <typename T>
T Max(T a, T b) {
  return a < b ? b : a;
}
// -1, 0 or 1; 0 of NaN.
template <typename T>
T Sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0);
}
template <typename T>
T Pow(T x, T y) {
  if constexpr (kIsSmallFloat<T>) return T(std::pow(static_cast<float>(x), static_cast<float>(y)));
  else return std::pow(x, y);
}

}  // namespace thalweg::training
