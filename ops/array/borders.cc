#include "thalweg/ops/array/borders.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

absl::Status CheckBorder(int64_t before, int64_t after, int dim) {
  if (before >= 0 && after >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("paddings[", dim, "] is [", before, ",", after, "]; both must be >= 0"));
}

}  // namespace

absl::StatusOr<Borders> ReadBorders(const Tensor& paddings, const Shape& in) {
  if (paddings.rank() != 2 || paddings.dim(1) != 2 || paddings.dim(0) != in.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("paddings must have shape [", in.rank(), ",2] for input ",
                                                   in.ToString(), ", but its shape is ", paddings.shape().ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(const Dims values, IntElementsArg(paddings, "paddings", 2 * kMaxRank));
  Borders borders(in.rank());
  for (int i = 0; i < in.rank(); ++i) {
    borders[i] = {values[2 * i], values[2 * i + 1]};
    THALWEG_RETURN_IF_ERROR(CheckBorder(borders[i].before, borders[i].after, i));
  }
  return borders;
}

absl::StatusOr<Shape> PaddedShape(const Shape& in, const Borders& borders) {
  Dims dims(in.dims().begin(), in.dims().end());
  for (int i = 0; i < in.rank(); ++i) {
    if (!CheckedAdd(dims[i], borders[i].before, &dims[i]) || !CheckedAdd(dims[i], borders[i].after, &dims[i])) {
      return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " of ", in.ToString(), " padded by [",
                                                     borders[i].before, ",", borders[i].after, "] overflows"));
    }
  }
  return Shape::Make(dims);
}

absl::Status PaddedShapeFn(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const PartialShape paddings,
                           ShapeContext::Merge(c.input(1), PartialShape::OfDims({c.input(0).rank(), 2})));
  const PartialShape& in = c.input(0);
  const int64_t rank = in.has_rank() ? in.rank() : paddings.dim(0);
  if (!IsKnownDim(rank)) return absl::OkStatus();
  if (rank > kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("paddings ", paddings.ToString(), " ask for a rank above ", kMaxRank));
  }
  const std::optional<std::vector<int64_t>> values = c.input_ints(1);
  Dims dims(rank, kUnknownDim);
  for (int i = 0; i < rank && values && static_cast<int64_t>(values->size()) == 2 * rank; ++i) {
    const int64_t before = (*values)[2 * i];
    const int64_t after = (*values)[2 * i + 1];
    THALWEG_RETURN_IF_ERROR(CheckBorder(before, after, i));
    THALWEG_ASSIGN_OR_RETURN(const int64_t both, ShapeContext::AddDims(before, after));
    THALWEG_ASSIGN_OR_RETURN(dims[i], ShapeContext::AddDims(in.has_rank() ? in.dim(i) : kUnknownDim, both));
  }
  return SetOutputDims(c, std::move(dims));
}

}  // namespace thalweg
