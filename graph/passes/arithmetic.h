// Takes out operations that change nothing, to the bit: adding an integer 0, a Transpose and its inverse, a Cast there
// and back, a Reshape to the same shape, and the like. What could be noticed (a floating-point x + 0 turns -0 into 0,
// and flushes denormals) is not done.
#pragma once

#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::StatusOr<bool> SimplifyArithmetic(Graph& graph, const PassContext& context);

}  // namespace thalweg
