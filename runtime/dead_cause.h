// Why a node has no value: the Switch that took another branch.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "thalweg/runtime/plan.h"

namespace thalweg {

// Follows dead producers from the dead node `id` (of the compiled graph) to where deadness began. `is_dead` answers for the iteration
// that `id` was looked for in and those around it (false if that is not known any more); `iteration_of` gives the number of the
// iteration of a node.
std::string ExplainDeadness(const Plan& plan, NodeId id, absl::FunctionRef<bool(NodeId)> is_dead,
                            absl::FunctionRef<int64_t(NodeId)> iteration_of);

}  // namespace thalweg
