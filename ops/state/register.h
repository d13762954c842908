// Ops on state that lasts from step to step: variables.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterStateOps(OpLibrary& lib);

}  // namespace thalweg
