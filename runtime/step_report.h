// What a running step does and what it waits for, in words: for the message of a time limit, and for Session::DescribeSteps.
//
// Threading: may be called from any thread while the step runs; what is said is what was seen at some moment of the call. Of general
// frames on one thread that thread itself says what waits; while it is in a kernel that takes long, others learn which one that is only.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "thalweg/runtime/step.h"

namespace thalweg {

inline constexpr size_t kMostWaitsInMessage = 5;

// "'node'", or, as the nodes at the ends of a step have names that nobody gave them, "feed 'x:0'" and "fetch 'y:0'".
std::string NodeName(const Plan& plan, const PlanNode& node);
// Which nodes wait for what, in one line, calls within the step included; "" if nothing is known to wait.
std::string DescribeWaits(StepState& step, size_t limit);
// " in iteration 3 of frame 'f'" for a node in a loop; "" elsewhere. By replay the step knows the iteration, in general frames the caller.
std::string DescribePlace(StepState& step, const PlanNode& node, int64_t iteration = -1);
// The same for an execution with this key (KernelContext::iteration_key). On the thread that runs the node.
std::string DescribePlaceByKey(StepState& step, const PlanNode& node, uint64_t iteration_key);
// The status of a step whose time is up while its thread has nothing to do.
absl::Status TimeLimitError(StepState& step);

// Several lines, the first one without indentation: which kernels run on which thread, what waits for what, iterations.
// `elapsed_nanos`: since the step began.
std::string DescribeStep(StepState& step, int64_t elapsed_nanos);

}  // namespace thalweg
