#include "thalweg/graph/shape_context.h"

#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {

ShapeContext::ShapeContext(NodeAttrs attrs, absl::Span<const DType> input_types, absl::Span<const PartialShape> inputs,
                           absl::Span<const TensorLiteralPtr> literals, absl::Span<const SymbolicValue> values,
                           int num_outputs, int64_t* next_symbol)
    : attrs_(attrs),
      input_types_(input_types),
      inputs_(inputs),
      literals_(literals),
      values_(values),
      outputs_(num_outputs),
      output_values_(num_outputs),
      next_symbol_(next_symbol) {}

std::optional<std::vector<int64_t>> ShapeContext::input_ints(int i) const {
  const TensorLiteral* literal = input_literal(i);
  if (literal == nullptr) return std::nullopt;
  absl::StatusOr<std::vector<int64_t>> ints = literal->ToInt64s();
  if (!ints.ok()) return std::nullopt;
  return *std::move(ints);
}

std::optional<int64_t> ShapeContext::input_int(int i) const {
  std::optional<std::vector<int64_t>> ints = input_ints(i);
  if (!ints || ints->size() != 1) return std::nullopt;
  return ints->front();
}

absl::StatusOr<PartialShape> ShapeContext::input_as_shape(int i) const {
  if (input(i).has_rank() && input(i).rank() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " of shape ", input(i).ToString(), " cannot be a shape: it must be a vector"));
  }
  if (std::optional<std::vector<int64_t>> ints = input_ints(i)) {
    for (int64_t d : *ints) {
      if (d < -1)
        return absl::InvalidArgumentError(
            absl::StrCat("input ", i, " has the dimension ", d, "; dimensions must be >= -1"));
    }
    absl::StatusOr<PartialShape> shape = PartialShape::Make(*ints);
    // What has more elements than can be is for the kernel to refuse (L21).
    if (!shape.ok() && ints->size() <= kMaxRank) return PartialShape::UnknownOfRank(static_cast<int>(ints->size()));
    return shape;
  }
  if (values_[i]) return PartialShape::OfDims(*values_[i]);
  if (input(i).has_rank() && input(i).rank() == 1 && IsKnownDim(input(i).dim(0)) && input(i).dim(0) <= kMaxRank) {
    return PartialShape::UnknownOfRank(static_cast<int>(input(i).dim(0)));
  }
  return PartialShape();
}

absl::Status ShapeContext::RequireRank(int i, int rank) const {
  if (!input(i).has_rank() || input(i).rank() == rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " must have rank ", rank, " but has shape ", input(i).ToString()));
}

absl::Status ShapeContext::RequireRankAtLeast(int i, int rank) const {
  if (!input(i).has_rank() || input(i).rank() >= rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " must have at least rank ", rank, " but has shape ", input(i).ToString()));
}

absl::Status ShapeContext::RequireRankAtMost(int i, int rank) const {
  if (!input(i).has_rank() || input(i).rank() <= rank) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " must have at most rank ", rank, " but has shape ", input(i).ToString()));
}

absl::StatusOr<int64_t> ShapeContext::MergeDim(int64_t a, int64_t b) {
  if (IsKnownDim(a) && IsKnownDim(b) && a != b)
    return absl::InvalidArgumentError(absl::StrCat("dimensions ", a, " and ", b, " must be equal"));
  if (IsKnownDim(a)) return a;
  if (IsKnownDim(b)) return b;
  return IsSymbol(a) ? a : b;
}

absl::StatusOr<PartialShape> ShapeContext::Merge(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank()) return b;
  if (!b.has_rank()) return a;
  Dims dims;
  if (a.rank() == b.rank()) {
    for (int i = 0; i < a.rank(); ++i) {
      absl::StatusOr<int64_t> d = MergeDim(a.dim(i), b.dim(i));
      if (!d.ok()) break;
      dims.push_back(*d);
    }
  }
  if (a.rank() != b.rank() || static_cast<int>(dims.size()) != a.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("shapes ", a.ToString(), " and ", b.ToString(), " must be equal"));
  }
  return PartialShape::OfDims(std::move(dims));
}

absl::StatusOr<PartialShape> ShapeContext::Broadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  Dims dims(rank);
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a.dim(a.rank() - i) : 1;
    const int64_t y = i <= b.rank() ? b.dim(b.rank() - i) : 1;
    int64_t& out = dims[rank - i];
    if (x == 1) out = y;
    else if (y == 1 || x == y) out = x;
    else if (IsKnownDim(x) && IsKnownDim(y)) {
      return absl::InvalidArgumentError(
          absl::StrCat("incompatible shapes for broadcasting: ", a.ToString(), " and ", b.ToString()));
    } else if (IsKnownDim(x)) out = x;
    else if (IsKnownDim(y)) out = y;
    else out = kUnknownDim;
  }
  return PartialShape::OfDims(std::move(dims));
}

absl::StatusOr<int64_t> ShapeContext::AddDims(int64_t a, int64_t b) {
  if (a == 0) return b;
  if (b == 0) return a;
  if (!IsKnownDim(a) || !IsKnownDim(b)) return kUnknownDim;
  int64_t sum;
  if (!CheckedAdd(a, b, &sum)) return absl::InvalidArgumentError(absl::StrCat("dimension ", a, " + ", b, " overflows"));
  return sum;
}

absl::StatusOr<int64_t> ShapeContext::SubDims(int64_t a, int64_t b) {
  if (b == 0) return a;
  if (!IsKnownDim(a) || !IsKnownDim(b)) return kUnknownDim;
  if (b > a) return absl::InvalidArgumentError(absl::StrCat("dimension ", a, " - ", b, " is negative"));
  return a - b;
}

absl::StatusOr<int64_t> ShapeContext::MulDims(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (a == 1) return b;
  if (b == 1) return a;
  if (!IsKnownDim(a) || !IsKnownDim(b)) return kUnknownDim;
  int64_t product;
  if (!CheckedMul(a, b, &product))
    return absl::InvalidArgumentError(absl::StrCat("dimension ", a, " * ", b, " overflows"));
  return product;
}

absl::StatusOr<int64_t> ShapeContext::DivDims(int64_t a, int64_t b, bool round_up) {
  if (b == 0) return absl::InvalidArgumentError(absl::StrCat("dimension ", a, " divided by 0"));
  if (b == 1) return a;
  if (!IsKnownDim(a) || !IsKnownDim(b)) return kUnknownDim;
  return a / b + (round_up && a % b != 0 ? 1 : 0);
}

absl::Status UnknownShape(ShapeContext& c) { return absl::OkStatus(); }

absl::Status ScalarShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::Known(Shape()));
  return absl::OkStatus();
}

absl::Status UnchangedShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  if (c.input_value(0)) c.set_output_value(0, *c.input_value(0));
  return absl::OkStatus();
}

absl::Status MergedShape(ShapeContext& c) {
  PartialShape merged;
  for (int i = 0; i < c.num_inputs(); ++i) {
    THALWEG_ASSIGN_OR_RETURN(merged, ShapeContext::Merge(merged, c.input(i)));
  }
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status BroadcastShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(PartialShape out, ShapeContext::Broadcast(c.input(0), c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status NoOutputs(ShapeContext& c) { return absl::OkStatus(); }

}  // namespace thalweg
