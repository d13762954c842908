#include "thalweg/ops/common/index_args.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {

std::string CoordinateString(const Shape& shape, int64_t flat) {
  Dims at(shape.rank());
  for (int i = shape.rank() - 1; i >= 0; --i) {
    const int64_t extent = shape.dim(i) > 0 ? shape.dim(i) : 1;
    at[i] = flat % extent;
    flat /= extent;
  }
  return absl::StrCat("[", absl::StrJoin(at, ","), "]");
}

}  // namespace thalweg
