// Parts of the control-flow family that RegisterControlOps puts together.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterReferenceChoiceOps(OpLibrary& lib);  // RefIdentity, RefSelect
void RegisterAbortOp(OpLibrary& lib);

}  // namespace thalweg
