// The parts of the training family, one function per source file; register.cc lists them.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterGradientDescentOps(OpLibrary& lib);
void RegisterAdaptiveTrainingOps(OpLibrary& lib);

}  // namespace thalweg
