// The activations of an epilogue that need a function. In a file of its own because it is compiled as the separate ops
// are: without contraction of a * b + c. Results have the bits of the separate ops but for what these leave to the C library,
// the elements past the last whole group (elementwise.h).
#pragma once

#include "thalweg/ops/common/epilogue.h"

namespace thalweg {

// Applies the activation in place to n elements; nothing for Relu and Relu6, which are bounds. T is float or double.
template <typename T>
void ActivateRow(Activation activation, float leaky_alpha, int64_t n, T* row);

}  // namespace thalweg
