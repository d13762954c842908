#include "thalweg/ops/state/register.h"

#include "thalweg/ops/state/state_ops.h"

namespace thalweg {

void RegisterStateOps(OpLibrary& lib) {
  RegisterResourceVariableOps(lib);
  RegisterReferenceOps(lib);
  RegisterUpdateOps(lib);
  RegisterScatterOps(lib);
  RegisterScatterNdOps(lib);
  RegisterResourceGatherOps(lib);
  RegisterStridedSliceAssign(lib);
}

}  // namespace thalweg
