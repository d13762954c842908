#include "thalweg/ops/common/strided_slice_spec.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

// What an entry of the specification does.
enum class EntryKind { kIndex, kEllipsis, kNewAxis };

bool Bit(int64_t mask, size_t i) { return (mask >> i) & 1; }

EntryKind KindOf(const StridedSliceMasks& masks, size_t i) {
  if (Bit(masks.ellipsis, i)) return EntryKind::kEllipsis;
  return Bit(masks.new_axis, i) ? EntryKind::kNewAxis : EntryKind::kIndex;
}

struct Entry {
  KnownIndex begin;
  KnownIndex end;
  KnownIndex stride;
  bool begin_masked = false;
  bool end_masked = false;
  bool shrink = false;
};

absl::Status OutOfBounds(int64_t index, int dim, int64_t extent) {
  return absl::InvalidArgumentError(
      absl::StrCat("slice index ", index, " of dimension ", dim, " is out of bounds for its extent ", extent));
}

// A single position; end does not matter.
absl::StatusOr<DimSlice> ShrunkDim(const Entry& e, int dim, int64_t extent) {
  if (e.stride && *e.stride < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "dimension ", dim, " is indexed by a single position, so its stride must be positive, not ", *e.stride));
  }
  DimSlice slice;
  slice.size = 1;
  slice.complete = e.begin.has_value();
  if (!e.begin) return slice;
  slice.begin = *e.begin;
  if (!IsKnownDim(extent)) {
    slice.complete = *e.begin >= 0;
    return slice;
  }
  if (*e.begin < -extent || *e.begin >= extent) {
    // Like TensorFlow, judge a position only once the end of its range is known as well.
    if (e.end) return OutOfBounds(*e.begin, dim, extent);
    slice.complete = false;
    return slice;
  }
  if (*e.begin < 0) slice.begin += extent;
  return slice;
}

// Maps a bound, negative ones counted from the end, into the positions that a walk in the stride's direction can visit,
// one past the last included.
int64_t Clamp(int64_t bound, int64_t extent, bool forward) {
  const int64_t position = bound < 0 ? bound + extent : bound;
  return forward ? std::clamp<int64_t>(position, 0, extent) : std::clamp<int64_t>(position, -1, extent - 1);
}

// Elements from begin (included) to end (excluded) in steps of stride; 0 if the direction is wrong.
int64_t StepCount(int64_t begin, int64_t end, int64_t stride) {
  const int64_t distance = end - begin;
  if (distance == 0 || (distance < 0) != (stride < 0)) return 0;
  return distance / stride + (distance % stride != 0 ? 1 : 0);
}

DimSlice RangeDim(const Entry& e, int64_t extent) {
  DimSlice slice;
  const bool known = e.stride && (e.begin_masked || e.begin) && (e.end_masked || e.end);
  if (known && IsKnownDim(extent)) {
    const bool forward = *e.stride > 0;
    const int64_t begin = e.begin_masked ? (forward ? 0 : extent - 1) : Clamp(*e.begin, extent, forward);
    const int64_t end = e.end_masked ? (forward ? extent : -1) : Clamp(*e.end, extent, forward);
    slice.begin = begin;
    slice.stride = *e.stride;
    slice.size = StepCount(begin, end, *e.stride);
    return slice;
  }
  // Everything, forwards or backwards, keeps even a symbol.
  const bool from_start = e.begin_masked || (e.begin == 0 && e.stride && *e.stride > 0);
  if (from_start && e.end_masked && e.stride && (*e.stride == 1 || *e.stride == -1)) slice.size = extent;
  slice.complete = false;
  return slice;
}

absl::Status TooManyIndices(absl::Span<const int64_t> input) {
  return absl::InvalidArgumentError(absl::StrCat("there are more indices than the ", input.size(),
                                                 " dimensions of input ",
                                                 PartialShape::OfDims(Dims(input.begin(), input.end())).ToString()));
}

}  // namespace

Dims StridedSlicePlan::OutputDims() const {
  Dims out;
  for (const int d : output_dims) out.push_back(d < 0 ? 1 : dims[d].size);
  return out;
}

absl::StatusOr<StridedSlicePlan> PlanStridedSlice(absl::Span<const int64_t> input, absl::Span<const KnownIndex> begin,
                                                  absl::Span<const KnownIndex> end,
                                                  absl::Span<const KnownIndex> strides,
                                                  const StridedSliceMasks& masks) {
  const size_t entries = strides.size();
  size_t indices = 0;
  for (size_t i = 0; i < entries; ++i) indices += KindOf(masks, i) == EntryKind::kIndex;
  // Unlike other bits, those of ellipses count even beyond the length.
  if ((masks.ellipsis & (masks.ellipsis - 1)) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("ellipsis_mask ", masks.ellipsis, " has more than one ellipsis"));
  }
  if (indices > input.size()) return TooManyIndices(input);

  StridedSlicePlan plan;
  const auto take_whole = [&](size_t count) {
    for (; count > 0; --count) {
      DimSlice whole;
      whole.size = input[plan.dims.size()];
      plan.output_dims.push_back(static_cast<int>(plan.dims.size()));
      plan.dims.push_back(whole);
    }
  };
  for (size_t i = 0; i < entries; ++i) {
    const EntryKind kind = KindOf(masks, i);
    if (kind == EntryKind::kEllipsis) {
      take_whole(input.size() - indices);
      continue;
    }
    if (kind == EntryKind::kNewAxis) {
      plan.output_dims.push_back(-1);
      continue;
    }
    const int dim = static_cast<int>(plan.dims.size());
    const Entry entry{begin[i], end[i], strides[i], Bit(masks.begin, i), Bit(masks.end, i), Bit(masks.shrink_axis, i)};
    if (entry.stride == 0) return absl::InvalidArgumentError(absl::StrCat("strides[", i, "] is 0"));
    if (entry.shrink) {
      THALWEG_ASSIGN_OR_RETURN(DimSlice slice, ShrunkDim(entry, dim, input[dim]));
      plan.dims.push_back(slice);
    } else {
      plan.output_dims.push_back(dim);
      plan.dims.push_back(RangeDim(entry, input[dim]));
    }
  }
  take_whole(input.size() - plan.dims.size());  // without an ellipsis one is implied at the end
  return plan;
}

}  // namespace thalweg
