#include "thalweg/ops/array/diagonal_band.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace thalweg {

BandAlignment AlignmentOf(const NodeAttrs& attrs) {
  const std::string align = attrs.GetOr<std::string>("align", "LEFT_LEFT");
  return {align == "LEFT_RIGHT" || align == "LEFT_LEFT", align == "RIGHT_LEFT" || align == "LEFT_LEFT"};
}

absl::StatusOr<DiagonalRange> RangeFrom(absl::Span<const int64_t> k) {
  if (k.empty() || k.size() > 2) {
    return absl::InvalidArgumentError(absl::StrCat("k must have one or two elements, but has ", k.size()));
  }
  if (k.front() <= k.back()) return DiagonalRange{k.front(), k.back()};
  return absl::InvalidArgumentError(
      absl::StrCat("the lower diagonal of k, ", k.front(), ", must not be above the upper one, ", k.back()));
}

absl::Status CheckInside(const DiagonalRange& range, int64_t rows, int64_t cols) {
  for (const int64_t d : {range.lower, range.upper}) {
    if (d == 0 || (d > -rows && d < cols)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("diagonal ", d, " lies outside of a ", rows, " x ", cols, " matrix: k must be in (", -rows, ",", cols, ")"));
  }
  return absl::OkStatus();
}

}  // namespace thalweg
