#include "thalweg/ops/linalg/register.h"

#include "thalweg/ops/linalg/linalg_ops.h"

namespace thalweg {

void RegisterLinalgOps(OpLibrary& lib) {
  RegisterMatMulOps(lib);
  RegisterEinsum(lib);
}

}  // namespace thalweg
