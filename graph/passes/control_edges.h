// Drops control edges that say what a data edge says already: from a node whose value the reader takes anyway, and
// doubles.
#pragma once

#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::StatusOr<bool> DropRedundantControlEdges(Graph& graph, const PassContext& context);

}  // namespace thalweg
