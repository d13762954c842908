// The parts of the family, one function per source file; register.cc lists them.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterElementOps(OpLibrary& lib);  // one element at a time, and the array itself
void RegisterBulkOps(OpLibrary& lib);     // many elements at once
void RegisterStackOps(OpLibrary& lib);

}  // namespace thalweg
