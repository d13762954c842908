// The parts of RegisterLinalgOps, one per file.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterMatMulOps(OpLibrary& lib);
void RegisterEinsum(OpLibrary& lib);

}  // namespace thalweg
