// Ops that make, move, select and describe tensors without arithmetic on their elements.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterArrayOps(OpLibrary& lib);

}  // namespace thalweg
