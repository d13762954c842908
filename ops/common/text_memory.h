// Room for text before it is made, for kernels whose output can have far more of it than their inputs.
//
// What kernels have made is charged for them afterwards (runtime/text_accounting.h); this asks beforehand, so that an output
// that passes the memory limit is refused, not built. Two kernels that ask at once may both be told yes.
// Errors: ResourceExhausted as from the allocator.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "thalweg/devices/text_memory.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

// Succeeds if so many bytes of text could be charged now.
inline absl::Status RequireTextMemory(KernelContext& ctx, int64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return ChargeOnly(ctx.host_allocator(), bytes, ctx.node().id).status();
}

// The same for `times` copies of each of the tensor's elements. Tensors of other dtypes need nothing.
absl::Status RequireTextMemory(KernelContext& ctx, const Tensor& elements, int64_t times);

}  // namespace thalweg
