// The parts of RegisterFunctionalOps, one per file.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterToBool(OpLibrary& lib);
void RegisterFail(OpLibrary& lib);
void RegisterDeviceIndex(OpLibrary& lib);

}  // namespace thalweg
