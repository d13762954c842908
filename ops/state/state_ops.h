// The parts of the state family, one function per source file; register.cc lists them.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterResourceVariableOps(OpLibrary& lib);
void RegisterReferenceOps(OpLibrary& lib);
void RegisterUpdateOps(OpLibrary& lib);   // the whole value at once
void RegisterScatterOps(OpLibrary& lib);  // rows of it
void RegisterScatterNdOps(OpLibrary& lib);
void RegisterResourceGatherOps(OpLibrary& lib);
void RegisterStridedSliceAssign(OpLibrary& lib);

}  // namespace thalweg
