// Neural-network ops: convolutions, pools, normalisations, softmax.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterNnOps(OpLibrary& lib);

}  // namespace thalweg
