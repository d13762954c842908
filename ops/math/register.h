// Arithmetic on elements: unary, binary and ternary elementwise ops, casts, comparisons, reductions and scans.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterMathOps(OpLibrary& lib);

}  // namespace thalweg
