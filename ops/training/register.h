// Ops that train variables with gradients.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterTrainingOps(OpLibrary& lib);

}  // namespace thalweg
