// Random numbers: ops with a stream of their own, and ops that take seed or key and counter as inputs.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterRandomOps(OpLibrary& lib);

}  // namespace thalweg
