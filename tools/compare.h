// Comparing fetched values with a reference archive: --expect ref.npz --tol f32=1e-5.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/tools/archive.h"

namespace thalweg::tools {

// Equal if |a - e| <= absolute + relative * |e|; NaN equals NaN, infinities by sign. Types that are not floating are
// compared exactly.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

class Tolerances {
 public:
  Tolerances();  // the defaults: float32 1e-5 and 1e-6, float64 1e-9 and 1e-12, float16 4e-3 and 1e-3, bfloat16 2e-2
                 // and 1e-2
  // "f32=1e-5", "f32=1e-5:1e-7" (relative:absolute), "1e-4" for every type; several with commas. InvalidArgument
  // otherwise.
  absl::Status Read(absl::string_view text);
  Tolerance of(DType dtype) const;

 private:
  void Set(DType dtype, Tolerance tolerance);
  std::vector<std::pair<DType, Tolerance>> by_type_;
};

// "" if equal, else what differs: "3 of 10 elements differ by more than 1e-5; first at [0,4]: got 1, expected 2".
// The reference is an array as read from a file; a type or shape of its own is a difference.
std::string Difference(const Tensor& value, const NpyArray& reference, const Tolerances& tolerances);

// The name that a fetched value has in a reference archive: as given, or with or without ":0"; "" if none.
std::string ReferenceKey(const TensorArchive& archive, const std::string& fetch, absl::string_view suffix);

}  // namespace thalweg::tools
