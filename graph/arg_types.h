// The types of single arguments; op_schema.h resolves those of whole nodes.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "thalweg/graph/op_schema.h"

namespace thalweg {

// Appends one type per tensor of the argument; errors are those of ResolveInputTypes.
absl::Status AppendArgTypes(const NodeAttrs& attrs, const ArgDecl& arg, std::vector<DType>* types);

}  // namespace thalweg
