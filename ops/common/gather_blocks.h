// Copies blocks of elements from computed places to consecutive ones: what gathers, Unique and the like end with.
#pragma once

#include <cstdint>

#include "thalweg/ops/kernel.h"
#include "thalweg/proto/dtype.h"

namespace thalweg {

// The destination is dense: batch * outer * count blocks. Block (b, o, i) comes from group (b, o) of the source, at
// element offsets[b * count + i] of it.
struct BlockGather {
  int64_t batch = 1;
  int64_t outer = 1;
  int64_t count = 0;
  int64_t block = 1;  // elements per block
  int64_t group = 0;  // elements from one source group to the next
  const int64_t* offsets =
      nullptr;  // batch * count of them; negative: the block becomes zeros (objects stay as they are)
};

// Room for the text of the destination (ops/common/text_memory.h); other dtypes need nothing.
absl::Status RequireTextOfBlocks(KernelContext& ctx, DType dtype, const BlockGather& gather, const void* src);

// Requires: a valid dtype, all source blocks inside the source. Splits large copies over the step's threads.
void GatherBlocks(KernelContext& ctx, DType dtype, const BlockGather& gather, const void* src, void* dst);

}  // namespace thalweg
