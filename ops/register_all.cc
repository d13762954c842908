#include "thalweg/ops/register_all.h"

#include "thalweg/ops/boundary/register.h"
#include "thalweg/ops/sim/sim_kernels.h"

namespace thalweg {

const OpLibrary& BuiltinOps() {
  static const OpLibrary& library = [] () -> const OpLibrary& {
    auto& lib = *new OpLibrary;
    RegisterBoundaryOps(lib);
    RegisterSimKernels(lib);
    return lib;
  }();
  return library;
}

}  // namespace thalweg
