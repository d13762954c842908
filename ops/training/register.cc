#include "thalweg/ops/training/register.h"

#include "thalweg/ops/training/training_ops.h"

namespace thalweg {

void RegisterTrainingOps(OpLibrary& lib) {
  RegisterGradientDescentOps(lib);
  RegisterAdaptiveTrainingOps(lib);
}

}  // namespace thalweg
