// The driver of ops that turn each string of a tensor into one element of the output.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/kernel.h"

namespace thalweg::strings {

// What one string costs, roughly; decides only whether a second thread pays.
inline constexpr double kNanosPerString = 60.0;

// Output 0, of element type Out and the shape of input 0, becomes fn(string, &element) for each element. The first
// error that fn returns is the result.
template <typename Out, typename Fn>
absl::Status MapStrings(KernelContext& ctx, Fn fn) {
  const Shape shape = ctx.input(0).shape();
  const std::string* in = ctx.input(0).flat<std::string>().data();
  THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
  Out* out = tensor->mutable_flat<Out>().data();
  FirstError error;
  ctx.ParallelFor(shape.num_elements(), kNanosPerString, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) error.Update(fn(in[i], &out[i]));
  });
  return error.status();
}

// Work on text has no arithmetic to count; a string is worth some operations per element.
inline NodeCost StringCost(const CostContext& c) { return ElementwiseCost<50>(c); }

}  // namespace thalweg::strings
