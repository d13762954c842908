// The softmax of one row, for ops that build on it. Pure; float and double only.
#pragma once

#include <cstdint>

namespace thalweg {

// What log(softmax) is made of besides the row: log(softmax[k]) = (in[k] - largest) - log_sum.
template <typename T>
struct RowSoftmax {
  T largest;
  T log_sum;
};

// Writes the softmax of in[0..n) to `out`, which may be `in`. Requires n >= 1.
template <typename T>
RowSoftmax<T> SoftmaxOfRow(const T* in, int64_t n, T* out);

}  // namespace thalweg
