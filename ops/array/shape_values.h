// What shape functions of this family know about integer inputs before anything runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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

// Output 0 becomes `dims`. InvalidArgument if the rank is too high or known dimensions overflow.
absl::Status SetOutputDims(ShapeContext& c, Dims dims);

}  // namespace thalweg
