// Kernels of the simulated accelerator: the CPU kernels, launched on the device's stream over its own memory.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

// Adds a "sim" kernel for the ops that the simulated accelerator supports (the list is in the .cc): one per CPU kernel,
// same dtypes and host-memory arguments. Call after all CPU kernels are registered.
void RegisterSimKernels(OpLibrary& lib);

}  // namespace thalweg
