// Kernels here compute on channels-last images; these bring channels-first ones into that layout and back.
#pragma once

#include "absl/status/statusor.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

// [N, C, spatial...] -> [N, spatial..., C] and back, for shapes of rank >= 2.
Shape ChannelsLastShape(const Shape& channels_first);
Shape ChannelsFirstShape(const Shape& channels_last);

// A copy in temporary memory with channels innermost. Elements must be plain memory.
absl::StatusOr<Tensor> ToChannelsLast(KernelContext& ctx, const Tensor& channels_first);
// Writes a channels-last image to `out`, which has the channels-first shape.
void StoreChannelsFirst(KernelContext& ctx, const Tensor& channels_last, Tensor* out);

}  // namespace thalweg
