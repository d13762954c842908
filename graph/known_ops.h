// The names of all ops that TensorFlow registers, whether thalweg has them or not.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace thalweg {

// Sorted.
absl::Span<const absl::string_view> KnownOps();
bool IsKnownOp(absl::string_view op);

}  // namespace thalweg
