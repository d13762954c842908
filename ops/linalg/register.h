// Linear algebra ops: matrix products.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterLinalgOps(OpLibrary& lib);

}  // namespace thalweg
