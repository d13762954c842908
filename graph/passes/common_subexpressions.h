// Merges nodes that compute the same from the same (F2-F6): same op, attributes, device, data inputs (in any order
// where the op is commutative) and control inputs. Equal control inputs keep what belongs to different branches and
// loops apart.
#pragma once

#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::StatusOr<bool> MergeCommonSubexpressions(Graph& graph, const PassContext& context);

}  // namespace thalweg
