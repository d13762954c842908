// Takes out nodes that only hand their input on: Identity, StopGradient and the like, and placeholders with a default
// that nobody feeds. What reads a reference stays, because that is where the variable is read.
#pragma once

#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::StatusOr<bool> RemoveIdentities(Graph& graph, const PassContext& context);

}  // namespace thalweg
