// Index tuples (the last dimension of an index tensor) turned into element offsets.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "thalweg/devices/tensor.h"

namespace thalweg {

// The offset of the slice that each of `count` tuples of `depth` indices names in a tensor of `shape`. Requires depth <= rank
// and count * depth elements. InvalidArgument naming the first tuple that is out of range.
absl::Status NdOffsets(const Tensor& indices, int64_t count, int depth, const Shape& shape, std::vector<int64_t>* offsets);

}  // namespace thalweg
