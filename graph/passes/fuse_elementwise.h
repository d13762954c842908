// Fuses elementwise ops that feed each other into one `_FusedElementwise`, so that what is between them never leaves the
// first-level cache, and small nodes cost one execution in place of several:
//
//   c' = Sigmoid(f + 1) * c + Sigmoid(i) * Tanh(j)      seven nodes of four inputs become one
//
// A group has one output and one shape: everything but its last node is read only inside, and all of it has the last node's
// shape and type (float or double), asks for the same device, and has no control edges inwards or between. Operands from
// outside have that shape, are single elements, or broadcast along whole rows. The results are the same to the bit. The last
// node keeps its name.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/graph/passes/pass.h"

namespace thalweg {

// The ops that may be in a group.
absl::Span<const absl::string_view> FusibleElementwiseOps();

absl::StatusOr<bool> FuseElementwise(Graph& graph, const PassContext& context);

}  // namespace thalweg
