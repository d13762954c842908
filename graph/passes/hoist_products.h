// Moves matrix products out of loops that read their rows one by one from a tensor known before the loop, as the cell of a
// recurrent network does with its inputs:
//
//   for t: z = MatMul(x[t], W)                      =>  p = MatMul(x, W); for t: z = p[t]
//   for t: z = MatMul(Concat(x[t], h), [W; U])      =>  p = MatMul(x, W); for t: z = MatMul(h, U) + p[t]
//
// One product of many rows reads the matrix once where the loop reads it in every iteration. W (and U) must be constant
// floats, as must a bias that is added to z and moves along; x[t] an element of a TensorArray that one scatter before the loop has filled, or of a tensor list made of a tensor,
// both loop invariants; the loop must not be inside another. Reading x[t] stays where it is, with all its errors, and what is
// taken from p comes after it. Sums are rounded in another order. Loops that end before the last row have computed more than
// they need, so rows must be few per element, and p of moderate size.
#pragma once

#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::StatusOr<bool> HoistProducts(Graph& graph, const PassContext& context);

}  // namespace thalweg
