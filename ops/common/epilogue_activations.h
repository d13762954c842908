// The activations of an epilogue that need a function. In a file of its own because it is compiled as the separate ops
// are: with contraction of a * b + c, which the other steps of an epilogue must not have.
#pragma once

#include "thalweg/ops/common/epilogue.h"

namespace thalweg {

// Applies the activation in place to n elements; nothing for Relu and Relu6, which are bounds. T is float or double.
template <typename T>
void ActivateRow(Activation activation, float leaky_alpha, int64_t n, T* row);

}  // namespace thalweg
