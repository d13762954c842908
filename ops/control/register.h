// Control flow: conditionals and loops of version 1, their reference twins, and Abort.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterControlOps(OpLibrary& lib);

}  // namespace thalweg
