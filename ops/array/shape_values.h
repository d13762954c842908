// What shape functions of this family know about integer inputs before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/shape_context.h"

namespace thalweg {

// One element of an integer input: its value if known, otherwise a symbol or kUnknownDim.
struct ElementKnowledge {
  std::optional<int64_t> value;
  int64_t dim = kUnknownDim;  // the element as a dimension: value if >= 0, a symbol, or unknown

  bool Is(int64_t v) const { return value == v; }
};

// The elements of input i, flattened; nullopt if not even their number is known or there are too many to look at.
std::optional<std::vector<ElementKnowledge>> KnownElements(const ShapeContext& c, int i);

// The elements of input i (rank 0 or 1) as dimensions, if anything is known about them.
std::optional<Dims> KnownDims(const ShapeContext& c, int i);

// The integer of input i if it is a constant scalar, nullopt if it is not constant. InvalidArgument for a constant of
// another shape: only one that is not known yet may turn out as one that the kernel takes (L21).
absl::StatusOr<std::optional<int64_t>> ConstantScalar(const ShapeContext& c, int i);

// Output 0 becomes `dims`. InvalidArgument if the rank is too high or known dimensions overflow.
absl::Status SetOutputDims(ShapeContext& c, Dims dims);

}  // namespace thalweg
