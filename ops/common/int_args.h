// Reading small integer arguments of kernels: axes, shapes, begins, paddings.
//
// The tensors are data, so everything about them is checked here: type, rank, element count. Each InvalidArgument names
// the argument and says what it was.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

// The elements of an integer vector with at most `limit` of them.
absl::StatusOr<Dims> IntVectorArg(const Tensor& t, absl::string_view name, int64_t limit = kMaxRank);

// All elements, row by row, of an integer tensor of any rank with at most `limit` of them.
absl::StatusOr<Dims> IntElementsArg(const Tensor& t, absl::string_view name, int64_t limit = kMaxRank);

// How strict an op is about what counts as a scalar.
enum class ScalarRule {
  kScalar,  // rank 0 only
  kScalarOrVectorOfOne,
  kOneElement,  // any rank
};
absl::StatusOr<int64_t> IntScalarArg(const Tensor& t, absl::string_view name, ScalarRule rule = ScalarRule::kScalar);

// InvalidArgument unless `t` is a scalar in the sense of `rule`; for arguments that are not integers.
absl::Status RequireScalar(const Tensor& t, absl::string_view name, ScalarRule rule = ScalarRule::kScalar);

// A shape given as an integer vector (or, tolerated as in L21, a scalar). InvalidArgument for a negative dimension.
absl::StatusOr<Shape> ShapeArg(const Tensor& t, absl::string_view name, bool scalar_ok = false);

}  // namespace thalweg
