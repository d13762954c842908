// Functions and functional control flow: declarations of the ops that lowering replaces (graph/lowering/), and the few
// nodes that it needs beside those of ops/control/.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterFunctionalOps(OpLibrary& lib);

}  // namespace thalweg
