// A band of diagonals of a matrix, and its packed form: one row per diagonal, from the highest to the lowest, padded to the
// longest. Pure arithmetic, shared by MatrixDiag, MatrixDiagPart and MatrixSetDiag.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/attrs.h"

namespace thalweg {

// Where padding goes: in front of (right-aligned) or behind diagonals that are shorter than the longest.
struct BandAlignment {
  bool superdiagonals_left = true;
  bool subdiagonals_left = true;
};
// From attribute `align`; without it, as the second versions of the ops align.
BandAlignment AlignmentOf(const NodeAttrs& attrs);

// Diagonal indices: 0 is the main one, positive ones lie above it. Requires lower <= upper.
struct DiagonalRange {
  int64_t lower = 0;
  int64_t upper = 0;
  int64_t count() const { return upper - lower + 1; }
};
// From the one or two elements of an argument k. InvalidArgument for any other number, or lower > upper.
absl::StatusOr<DiagonalRange> RangeFrom(absl::Span<const int64_t> k);

struct DiagonalBand {
  int64_t rows = 0, cols = 0;
  DiagonalRange range;
  BandAlignment alignment;

  int64_t Length(int64_t d) const {
    return std::max<int64_t>(0, std::min(rows + std::min<int64_t>(d, 0), cols - std::max<int64_t>(d, 0)));
  }
  int64_t MaxLength() const {
    return std::max<int64_t>(
        0, std::min(rows + std::min<int64_t>(range.upper, 0), cols - std::max<int64_t>(range.lower, 0)));
  }
  // Padding in front of diagonal d in its packed row of `row_length` elements.
  int64_t Padding(int64_t d, int64_t row_length) const {
    const bool left = (d >= 0 && alignment.superdiagonals_left) || (d <= 0 && alignment.subdiagonals_left);
    return left ? 0 : row_length - Length(d);
  }
  // The first element of diagonal d in the matrix; the next ones are cols + 1 apart.
  int64_t Start(int64_t d) const { return d >= 0 ? d : -d * cols; }
};

// InvalidArgument if a diagonal of the range lies outside of a rows x cols matrix.
absl::Status CheckInside(const DiagonalRange& range, int64_t rows, int64_t cols);

}  // namespace thalweg
