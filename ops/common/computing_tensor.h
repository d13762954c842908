// Whole tensors in the type that they are computed in: kernels that would lose too much (or run too slowly) in half or
// bfloat16 work on float copies and round once at the end.
#pragma once

#include "absl/status/statusor.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

// The type in which arithmetic on elements of this type is done: float for half and bfloat16, itself for all others.
DType ComputingType(DType storage);

// `t` in its computing type: itself if that is its own, else a converted copy in temporary memory.
absl::StatusOr<Tensor> ToComputing(KernelContext& ctx, const Tensor& t);

// Where a kernel computes an output: the output itself, or (if its type is not its computing type) a temporary of the
// same shape. Finish() writes the temporary's values to the output.
class ComputedOutput {
 public:
  // Allocates output `index` of the node and what else is needed.
  static absl::StatusOr<ComputedOutput> Allocate(KernelContext& ctx, int index, const Shape& shape);
  void* data() { return computed_.mutable_raw(); }
  Tensor* mutable_tensor() { return &computed_; }
  void Finish(KernelContext& ctx);

 private:
  Tensor output_;
  Tensor computed_;
};

// Converts n elements from the computing type to the storage type or back, split over the session's threads.
void ConvertFromComputing(KernelContext& ctx, const Tensor& computed, Tensor* stored);

}  // namespace thalweg
