// The parts of RegisterNnOps, one per file.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterBatchNormOps(OpLibrary& lib);
void RegisterBiasOps(OpLibrary& lib);
void RegisterConvOps(OpLibrary& lib);
void RegisterConvBackpropOps(OpLibrary& lib);
void RegisterConvBackpropFilterOps(OpLibrary& lib);
void RegisterCrossEntropyOps(OpLibrary& lib);
void RegisterFakeQuantOps(OpLibrary& lib);
void RegisterInTopKOps(OpLibrary& lib);
void RegisterLrnOps(OpLibrary& lib);
void RegisterPoolOps(OpLibrary& lib);
void RegisterSoftmaxOps(OpLibrary& lib);

}  // namespace thalweg
