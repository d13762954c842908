// Outputs that are small vectors of int32 or int64: shapes, indices, counts.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

// Output `i`, of type int32 or int64, becomes a vector of these numbers. InvalidArgument if one does not fit.
absl::Status EmitInts(KernelContext& ctx, int i, absl::Span<const int64_t> values);

}  // namespace thalweg
