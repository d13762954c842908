// Shapes: fully known ones (Shape), partly known ones (PartialShape), and overflow-checked 64-bit arithmetic on sizes.
//
// There is no unchecked way to build a Shape from data: Shape::Make verifies rank, signs, and that the element count
// fits 63 bits (with zero dimensions skipped, so that [0, 2^62, 2^62] is refused too). All types are values; const
// member functions are thread-safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/proto/export.h"

namespace thalweg {

inline constexpr int kMaxRank = 254;

// Each returns false (leaving *out unspecified) if the exact result does not fit int64_t.
inline bool CheckedMul(int64_t a, int64_t b, int64_t* out) { return !__builtin_mul_overflow(a, b, out); }
inline bool CheckedAdd(int64_t a, int64_t b, int64_t* out) { return !__builtin_add_overflow(a, b, out); }
inline bool CheckedSub(int64_t a, int64_t b, int64_t* out) { return !__builtin_sub_overflow(a, b, out); }

using Dims = absl::InlinedVector<int64_t, 5>;

// The shape of a tensor: dimensions >= 0, rank <= kMaxRank, element count < 2^63.
class THALWEG_EXPORT Shape {
 public:
  Shape() = default;  // a scalar: rank 0, one element

  // InvalidArgument if a dimension is negative, the rank exceeds kMaxRank, or the element count overflows.
  static absl::StatusOr<Shape> Make(absl::Span<const int64_t> dims);
  // For dimensions known to be small and non-negative (literals, dimensions of an existing shape of the same size).
  // Requires what Make checks; aborts the process otherwise, so never use it on data.
  static Shape Of(std::initializer_list<int64_t> dims);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  int64_t num_elements() const { return num_elements_; }

  // Product of dims [begin, end); never overflows for valid begin and end, as zeros are not skipped.
  int64_t NumElements(int begin, int end) const;

  // "[2,3]"; a scalar prints "[]".
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) { return a.dims_ == b.dims_; }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  Dims dims_;
  int64_t num_elements_ = 1;
};

// A shape of which rank or dimensions may be unknown. A dimension is >= 0 (known), kUnknownDim (unknown, unrelated to
// any other), or below kUnknownDim: a symbol. Two equal symbols stand for the same unknown size within one graph.
inline constexpr int64_t kUnknownDim = -1;
inline bool IsKnownDim(int64_t d) { return d >= 0; }
inline bool IsSymbol(int64_t d) { return d < kUnknownDim; }

class THALWEG_EXPORT PartialShape {
 public:
  PartialShape() = default;  // unknown rank
  static PartialShape UnknownOfRank(int rank);
  static PartialShape Known(const Shape& shape);
  // InvalidArgument if a dimension is below kUnknownDim, the rank too high, or known dimensions overflow.
  static absl::StatusOr<PartialShape> Make(absl::Span<const int64_t> dims);
  // Dimensions computed by shape functions, symbols allowed. Requires rank <= kMaxRank.
  static PartialShape OfDims(Dims dims);

  bool has_rank() const { return has_rank_; }
  int rank() const { return has_rank_ ? static_cast<int>(dims_.size()) : -1; }
  int64_t dim(int i) const { return dims_[i]; }
  absl::Span<const int64_t> dims() const { return dims_; }
  void set_dim(int i, int64_t d) { dims_[i] = d; }

  bool IsFullyKnown() const;
  // The shape, if fully known and valid.
  absl::StatusOr<Shape> ToShape() const;
  // Element count, or -1 if unknown or too large.
  int64_t NumElementsOrUnknown() const;

  // True if some Shape satisfies both (symbols count as unknown).
  bool IsCompatibleWith(const PartialShape& other) const;
  bool IsCompatibleWith(const Shape& shape) const;

  // "[?,224,224,3]"; unknown rank prints "<unknown>"; symbols print "s0", "s1", ...
  std::string ToString() const;

  friend bool operator==(const PartialShape& a, const PartialShape& b) {
    return a.has_rank_ == b.has_rank_ && a.dims_ == b.dims_;
  }
  friend bool operator!=(const PartialShape& a, const PartialShape& b) { return !(a == b); }

 private:
  bool has_rank_ = false;
  Dims dims_;
};

// Axis handling in one place (robustness rule 10): maps axis in [-rank, rank) to [0, rank).
THALWEG_EXPORT absl::StatusOr<int> NormalizeAxis(int64_t axis, int rank, const char* what = "axis");

// The shape that two operands broadcast to (NumPy rules); InvalidArgument naming both shapes if they do not fit.
THALWEG_EXPORT absl::StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace thalweg
