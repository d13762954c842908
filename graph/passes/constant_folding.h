// Replaces nodes whose value is known before running by constants (F7-F12): nodes with constant inputs are evaluated,
// and Shape, ShapeN, Rank and Size of inputs with known shapes need not even that. A constant takes over the control
// edges of everything it stands for, in both directions, so that nothing is lifted out of a branch or loop and the
// replaced node can go (F9, H24). Failing to evaluate leaves a node for run time.
#pragma once

#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::StatusOr<bool> FoldConstants(Graph& graph, const PassContext& context);

}  // namespace thalweg
