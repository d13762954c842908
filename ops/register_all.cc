#include "thalweg/ops/register_all.h"

#include "thalweg/ops/array/register.h"
#include "thalweg/ops/boundary/register.h"
#include "thalweg/ops/control/register.h"
#include "thalweg/ops/functional/register.h"
#include "thalweg/ops/image/register.h"
#include "thalweg/ops/linalg/register.h"
#include "thalweg/ops/math/register.h"
#include "thalweg/ops/nn/register.h"
#include "thalweg/ops/queue/register.h"
#include "thalweg/ops/random/register.h"
#include "thalweg/ops/sim/sim_kernels.h"
#include "thalweg/ops/state/register.h"
#include "thalweg/ops/strings/register.h"
#include "thalweg/ops/tensor_array/register.h"
#include "thalweg/ops/training/register.h"
#include "thalweg/ops/variant/register.h"

namespace thalweg {

const OpLibrary& BuiltinOps() {
  static const OpLibrary& library = []() -> const OpLibrary& {
    auto& lib = *new OpLibrary;
    RegisterArrayOps(lib);
    RegisterBoundaryOps(lib);
    RegisterControlOps(lib);
    RegisterFunctionalOps(lib);
    RegisterImageOps(lib);
    RegisterLinalgOps(lib);
    RegisterMathOps(lib);
    RegisterNnOps(lib);
    RegisterQueueOps(lib);
    RegisterRandomOps(lib);
    RegisterStateOps(lib);
    RegisterStringOps(lib);
    RegisterTensorArrayOps(lib);
    RegisterTrainingOps(lib);
    RegisterVariantOps(lib);
    RegisterSimKernels(lib);  // last: it copies the CPU kernels
    return lib;
  }();
  return library;
}

}  // namespace thalweg
