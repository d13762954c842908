// Ops on data that loops carry beside tensors: TensorArrays and stacks.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterTensorArrayOps(OpLibrary& lib);

}  // namespace thalweg
