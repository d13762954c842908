// Which elements of a tensor equal each other: the basis of Unique, ListDiff and their kin.
#pragma once

#include <cstdint>
#include <vector>

#include "thalweg/devices/tensor.h"

namespace thalweg {

// Elements by class of equals; classes are numbered in order of their first elements.
struct ElementClasses {
  std::vector<int64_t> of_element;
  std::vector<int64_t> first;  // the first element of each class
};

// Classifies the elements of `t`, then those of `more`, which has the same dtype, if there is one. Floats equal as they do
// in TensorFlow: every NaN stands alone (L18). Strings and plain types only.
ElementClasses ClassifyElements(const Tensor& t, const Tensor* more = nullptr);

}  // namespace thalweg
