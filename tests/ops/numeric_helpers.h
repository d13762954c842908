// Values and comparisons for tests of numeric kernels.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "thalweg/devices/tensor.h"

namespace thalweg::testing {

// Small integers from -8 to 8 in a scrambled, repeatable order: products and sums of a few thousand are exact in float.
template <typename T>
std::vector<T> Scrambled(int64_t n, uint32_t seed = 1) {
  std::vector<T> values(n);
  uint32_t state = seed * 2654435761u + 12345u;
  for (T& v : values) {
    state = state * 1664525u + 1013904223u;
    v = T(static_cast<float>(static_cast<int>(state >> 16) % 17 - 8));
  }
  return values;
}
// The same for values that are not exact: multiples of 0.137.
inline std::vector<float> Inexact(int64_t n, uint32_t seed = 1) {
  std::vector<float> values = Scrambled<float>(n, seed);
  for (float& v : values) v *= 0.137f;
  return values;
}

template <typename T>
Tensor MakeTensor(std::vector<T> values, std::initializer_list<int64_t> dims) {
  return *Tensor::Of<T>(std::move(values), Shape::Of(dims));
}

inline void ExpectShape(const Tensor& t, std::initializer_list<int64_t> dims) {
  EXPECT_EQ(t.shape(), Shape::Of(dims)) << t.shape().ToString();
}

// Every element within atol + rtol * |expected|; NaN equals NaN.
inline void ExpectNear(const Tensor& t, const std::vector<float>& expected, double rtol = 1e-5, double atol = 1e-6) {
  const absl::Span<const float> got = t.flat<float>();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i << " is " << got[i];
    } else {
      ASSERT_NEAR(got[i], expected[i], atol + rtol * std::fabs(expected[i])) << "element " << i;
    }
  }
}

template <typename T>
std::vector<T> Values(const Tensor& t) {
  const absl::Span<const T> flat = t.flat<T>();
  return std::vector<T>(flat.begin(), flat.end());
}
// An error fails the test and gives no elements.
template <typename T>
std::vector<T> Values(const absl::StatusOr<Tensor>& t) {
  if (t.ok()) return Values<T>(*t);
  ADD_FAILURE() << t.status();
  return {};
}

}  // namespace thalweg::testing
