#include "thalweg/ops/nn/register.h"

#include "thalweg/ops/nn/nn_ops.h"

namespace thalweg {

void RegisterNnOps(OpLibrary& lib) {
  RegisterBatchNormOps(lib);
  RegisterBiasOps(lib);
  RegisterConvOps(lib);
  RegisterConvBackpropOps(lib);
  RegisterConvBackpropFilterOps(lib);
  RegisterCrossEntropyOps(lib);
  RegisterFakeQuantOps(lib);
  RegisterInTopKOps(lib);
  RegisterLrnOps(lib);
  RegisterPoolOps(lib);
  RegisterSoftmaxOps(lib);
}

}  // namespace thalweg
