#include "thalweg/ops/array/register.h"

#include "thalweg/ops/array/array_ops.h"

namespace thalweg {

void RegisterArrayOps(OpLibrary& lib) {
  RegisterAssert(lib);
  RegisterBitcast(lib);
  RegisterBroadcastShapeOps(lib);
  RegisterConcatOps(lib);
  RegisterConstantOps(lib);
  RegisterDepthSpaceOps(lib);
  RegisterDiagOps(lib);
  RegisterDynamicStitchOps(lib);
  RegisterEnsureShape(lib);
  RegisterGatherNd(lib);
  RegisterGatherOps(lib);
  RegisterIdentityOps(lib);
  RegisterInplaceOps(lib);
  RegisterMatrixDiagOps(lib);
  RegisterMirrorPadOps(lib);
  RegisterOneHot(lib);
  RegisterPadOps(lib);
  RegisterPermutationOps(lib);
  RegisterPlaceholderOps(lib);
  RegisterRange(lib);
  RegisterReshapeOps(lib);
  RegisterReverse(lib);
  RegisterReverseSequence(lib);
  RegisterRoll(lib);
  RegisterTensorScatterOps(lib);
  RegisterSearchOps(lib);
  RegisterShapeOps(lib);
  RegisterSlice(lib);
  RegisterSpaceBatchOps(lib);
  RegisterSplitOps(lib);
  RegisterStridedSlice(lib);
  RegisterTileOps(lib);
  RegisterTopK(lib);
  RegisterTransposeOps(lib);
  RegisterUniqueOps(lib);
  RegisterWhere(lib);
}

}  // namespace thalweg
