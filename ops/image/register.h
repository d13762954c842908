// Image ops: resizing.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterImageOps(OpLibrary& lib);

}  // namespace thalweg
