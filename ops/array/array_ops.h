// The parts of the array family, one function per source file; register.cc lists them.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterAssert(OpLibrary& lib);
void RegisterBitcast(OpLibrary& lib);
void RegisterBroadcastShapeOps(OpLibrary& lib);
void RegisterConcatOps(OpLibrary& lib);
void RegisterConstantOps(OpLibrary& lib);
void RegisterDepthSpaceOps(OpLibrary& lib);
void RegisterDiagOps(OpLibrary& lib);
void RegisterDynamicStitchOps(OpLibrary& lib);
void RegisterEnsureShape(OpLibrary& lib);
void RegisterGatherNd(OpLibrary& lib);
void RegisterGatherOps(OpLibrary& lib);
void RegisterIdentityOps(OpLibrary& lib);
void RegisterInplaceOps(OpLibrary& lib);
void RegisterMatrixDiagOps(OpLibrary& lib);
void RegisterMirrorPadOps(OpLibrary& lib);
void RegisterOneHot(OpLibrary& lib);
void RegisterPadOps(OpLibrary& lib);
void RegisterPermutationOps(OpLibrary& lib);
void RegisterPlaceholderOps(OpLibrary& lib);
void RegisterRange(OpLibrary& lib);
void RegisterReshapeOps(OpLibrary& lib);
void RegisterReverse(OpLibrary& lib);
void RegisterReverseSequence(OpLibrary& lib);
void RegisterRoll(OpLibrary& lib);
void RegisterTensorScatterOps(OpLibrary& lib);
void RegisterSearchOps(OpLibrary& lib);
void RegisterShapeOps(OpLibrary& lib);
void RegisterSlice(OpLibrary& lib);
void RegisterSpaceBatchOps(OpLibrary& lib);
void RegisterSplitOps(OpLibrary& lib);
void RegisterStridedSlice(OpLibrary& lib);
void RegisterTileOps(OpLibrary& lib);
void RegisterTopK(OpLibrary& lib);
void RegisterTransposeOps(OpLibrary& lib);
void RegisterUniqueOps(OpLibrary& lib);
void RegisterWhere(OpLibrary& lib);

}  // namespace thalweg
