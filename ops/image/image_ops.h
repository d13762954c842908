// The parts of RegisterImageOps, one per file.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterNonMaxSuppressionOps(OpLibrary& lib);
void RegisterResizeOps(OpLibrary& lib);

}  // namespace thalweg
