// The equation of an Einsum: which label each dimension has, which labels the output keeps.
//
// Pure functions; errors are InvalidArgument and quote the equation.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

// Letters are numbered from 0; the dimensions that an ellipsis stands for from kFirstEllipsisLabel, counted from the right,
// so that those of two operands line up as in broadcasting.
using Labels = absl::InlinedVector<int, 8>;
inline constexpr int kEllipsis = -1;  // in a parsed subscript
inline constexpr int kFirstEllipsisLabel = 52;
inline constexpr int kMaxLabels = kFirstEllipsisLabel + kMaxRank;

struct EinsumEquation {
  std::vector<Labels> inputs;  // one subscript per operand
  Labels output;
};

// "ij,jk->ik". Requires: labels are letters, at most one ellipsis per subscript, `num_inputs` (1 or 2) operands, and output
// labels that some operand has.
absl::StatusOr<EinsumEquation> ParseEinsum(absl::string_view equation, int num_inputs);

// A subscript with its ellipsis written out for an operand of this rank. InvalidArgument if the rank does not fit.
absl::StatusOr<Labels> LabelsOfOperand(const Labels& subscript, int rank);
// The same for the output, whose ellipsis stands for `ellipsis_rank` dimensions.
Labels LabelsOfOutput(const Labels& subscript, int ellipsis_rank);
// How many dimensions the ellipsis of a subscript stands for in an operand of this rank; 0 without an ellipsis.
int EllipsisRank(const Labels& subscript, int rank);

}  // namespace thalweg
