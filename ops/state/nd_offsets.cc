#include "thalweg/ops/state/nd_offsets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/ops/common/index_args.h"

namespace thalweg {

absl::Status NdOffsets(const Tensor& indices, int64_t count, int depth, const Shape& shape, std::vector<int64_t>* offsets) {
  if (count > 0 && depth > 0 && shape.NumElements(0, depth) == 0) {
    return absl::InvalidArgumentError(absl::StrCat("no index is in range of a variable of shape ", shape.ToString()));
  }
  // Empty tuples and slices are not limited in number by any memory that they take.
  if (depth == 0 && shape.num_elements() == 0) return absl::OkStatus();
  offsets->reserve(count);
  return WithIndices(indices, [&](auto index) -> absl::Status {
    for (int64_t i = 0; i < count; ++i) {
      int64_t offset = 0;
      for (int d = 0; d < depth; ++d) {
        const int64_t at = index[i * depth + d];
        if (!IndexInRange(at, shape.dim(d))) {
          return absl::InvalidArgumentError(absl::StrCat("index tuple ", i, " is [",
                                                         absl::StrJoin(index.subspan(i * depth, depth), ","),
                                                         "], which is not in a variable of shape ", shape.ToString()));
        }
        offset = offset * shape.dim(d) + at;
      }
      offsets->push_back(offset * shape.NumElements(depth, shape.rank()));
    }
    return absl::OkStatus();
  });
}

}  // namespace thalweg
