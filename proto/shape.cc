#include "thalweg/proto/shape.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

// Product with zeros skipped, so that a zero dimension does not excuse the others. -1 on overflow.
int64_t NonZeroProduct(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t d : dims) {
    if (d > 0 && !CheckedMul(product, d, &product)) return -1;
  }
  return product;
}

std::string DimsString(absl::Span<const int64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i) out += ',';
    if (dims[i] >= 0)
      absl::StrAppend(&out, dims[i]);
    else if (dims[i] == kUnknownDim)
      out += '?';
    else
      absl::StrAppend(&out, "s", kUnknownDim - 1 - dims[i]);
  }
  return out += ']';
}

absl::Status CheckDims(absl::Span<const int64_t> dims, int64_t least) {
  if (dims.size() > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat("shape of rank ", dims.size(), " exceeds the limit of ", kMaxRank));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < least) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", i, " of a shape is ", dims[i], "; it must be >= ", least));
    }
  }
  if (NonZeroProduct(dims) < 0) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", DimsString(dims), " has more than 2^63-1 elements"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> Shape::Make(absl::Span<const int64_t> dims) {
  absl::Status status = CheckDims(dims, 0);
  if (!status.ok()) return status;
  Shape shape;
  shape.dims_.assign(dims.begin(), dims.end());
  for (int64_t d : dims) shape.num_elements_ *= d;
  return shape;
}

Shape Shape::Of(std::initializer_list<int64_t> dims) {
  absl::StatusOr<Shape> shape = Make(absl::MakeConstSpan(dims.begin(), dims.size()));
  if (!shape.ok()) {
    std::fprintf(stderr, "Shape::Of: %s\n", shape.status().ToString().c_str());
    std::abort();
  }
  return *std::move(shape);
}

int64_t Shape::NumElements(int begin, int end) const {
  int64_t n = 1;
  for (int i = begin; i < end; ++i) n *= dims_[i];
  return n;
}

std::string Shape::ToString() const { return DimsString(dims_); }

PartialShape PartialShape::UnknownOfRank(int rank) {
  PartialShape s;
  s.has_rank_ = true;
  s.dims_.assign(rank, kUnknownDim);
  return s;
}

PartialShape PartialShape::Known(const Shape& shape) {
  PartialShape s;
  s.has_rank_ = true;
  s.dims_.assign(shape.dims().begin(), shape.dims().end());
  return s;
}

absl::StatusOr<PartialShape> PartialShape::Make(absl::Span<const int64_t> dims) {
  absl::Status status = CheckDims(dims, kUnknownDim);
  if (!status.ok()) return status;
  return OfDims(Dims(dims.begin(), dims.end()));
}

PartialShape PartialShape::OfDims(Dims dims) {
  PartialShape s;
  s.has_rank_ = true;
  s.dims_ = std::move(dims);
  return s;
}

bool PartialShape::IsFullyKnown() const { return has_rank_ && std::all_of(dims_.begin(), dims_.end(), IsKnownDim); }

absl::StatusOr<Shape> PartialShape::ToShape() const {
  if (!IsFullyKnown()) return absl::InvalidArgumentError(absl::StrCat("shape ", ToString(), " is not fully known"));
  return Shape::Make(dims_);
}

int64_t PartialShape::NumElementsOrUnknown() const {
  if (!IsFullyKnown()) return -1;
  absl::StatusOr<Shape> shape = Shape::Make(dims_);
  return shape.ok() ? shape->num_elements() : -1;
}

bool PartialShape::IsCompatibleWith(const PartialShape& other) const {
  if (!has_rank_ || !other.has_rank_) return true;
  if (rank() != other.rank()) return false;
  for (int i = 0; i < rank(); ++i) {
    if (IsKnownDim(dims_[i]) && IsKnownDim(other.dims_[i]) && dims_[i] != other.dims_[i]) return false;
  }
  return true;
}

bool PartialShape::IsCompatibleWith(const Shape& shape) const {
  if (!has_rank_) return true;
  if (rank() != shape.rank()) return false;
  for (int i = 0; i < rank(); ++i) {
    if (IsKnownDim(dims_[i]) && dims_[i] != shape.dim(i)) return false;
  }
  return true;
}

std::string PartialShape::ToString() const { return has_rank_ ? DimsString(dims_) : "<unknown>"; }

absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank, const char* what) {
  if (axis < -static_cast<int64_t>(rank) || axis >= rank) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", axis, " is out of range for rank ", rank, "; it must be in [", -rank, ",", rank, ")"));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Dims dims(rank);
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.rank() ? a.dim(a.rank() - i) : 1;
    const int64_t y = i <= b.rank() ? b.dim(b.rank() - i) : 1;
    if (x != y && x != 1 && y != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("incompatible shapes for broadcasting: ", a.ToString(), " and ", b.ToString()));
    }
    dims[rank - i] = x == 1 ? y : x;
  }
  return Shape::Make(dims);
}

}  // namespace thalweg
