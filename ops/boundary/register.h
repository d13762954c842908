// The nodes at the borders of a step and of a device: _Arg, _Retval, _Send, _Recv.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterBoundaryOps(OpLibrary& lib);

}  // namespace thalweg
