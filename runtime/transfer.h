// Moving a tensor between memories, as a _Recv does.
#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "thalweg/runtime/step.h"

namespace thalweg {

// Copies `source` into the memory in which the readers of `node`, a kTransfer, want it. `done` is called once, on any thread.
void StartTransfer(StepState& step, const PlanNode& node, Tensor source, Device::CopyDone done);

}  // namespace thalweg
