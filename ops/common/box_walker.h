// Offsets of the positions in a box of dimensions, in row-major order.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "thalweg/ops/common/reduce.h"

namespace thalweg {

class BoxWalker {
 public:
  explicit BoxWalker(absl::Span<const ReductionPlan::Dimension> dims) : dims_(dims), position_(dims.size(), 0) {}
  int64_t offset() const { return offset_; }
  // False after the last position.
  bool Next() {
    for (int d = static_cast<int>(dims_.size()) - 1; d >= 0; --d) {
      offset_ += dims_[d].stride;
      if (++position_[d] < dims_[d].size) return true;
      offset_ -= dims_[d].size * dims_[d].stride;
      position_[d] = 0;
    }
    return false;
  }

 private:
  absl::Span<const ReductionPlan::Dimension> dims_;
  Dims position_;
  int64_t offset_ = 0;
};

}  // namespace thalweg
