// Reductions of floats whose operations are done in TensorFlow's order, which gives its last bits: loops in which a last bit
// decides a comparison then go the same way. For inputs of few elements; sums of many are carried in double instead, which
// is more accurate.
//
// The order is one of vectors of eight: rows by four interleaved vectors; columns by four interleaved rows where eight
// neighbouring outputs can be computed at once, else one row after another.
#pragma once

#include <cstdint>

#include "thalweg/ops/common/reduce.h"

namespace thalweg {

inline constexpr int64_t kMaxOrderedElements = 32768;

// `def` has loops for float carried in float. Requires a reduced dimension, which may be empty.
void ReduceInOrder(const ReduceDef& def, const ReductionPlan& plan, const float* in, float* out);

}  // namespace thalweg
