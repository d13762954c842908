// Whether a call fits the function it names, with the codes that TensorFlow 2.21 gives (L6). All functions are pure.
#pragma once

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "thalweg/graph/lowering/function_body.h"

namespace thalweg {

// A call: InvalidArgument for arguments that do not fit, Internal for results that do not. More declared results than the
// function has are no fault until one of them is read: TooFewResults then.
absl::Status CheckCall(const FunctionBody& body, absl::Span<const DType> arg_types, absl::Span<const DType> result_types);
absl::Status TooFewResults(const Node& call, int given);
// A branch of If or Case: the same, and the number of results must agree.
absl::Status CheckBranch(const FunctionBody& body, absl::Span<const DType> arg_types, absl::Span<const DType> result_types);
// Condition and body of a While: InvalidArgument.
absl::Status CheckLoop(const Node& loop, const FunctionBody& cond, const FunctionBody& body);

}  // namespace thalweg
