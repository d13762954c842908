#include "thalweg/ops/common/text_memory.h"

#include <limits>

#include "thalweg/proto/shape.h"

namespace thalweg {

absl::Status RequireTextMemory(KernelContext& ctx, const Tensor& elements, int64_t times) {
  if (elements.dtype() != DType::kString) return absl::OkStatus();
  int64_t bytes;
  if (!CheckedMul(TextBytes(elements.flat<std::string>()), times, &bytes)) bytes = std::numeric_limits<int64_t>::max();
  return RequireTextMemory(ctx, bytes);
}

}  // namespace thalweg
