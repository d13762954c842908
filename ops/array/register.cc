#include "thalweg/ops/array/register.h"

#include "thalweg/ops/array/array_ops.h"

namespace thalweg {

void RegisterArrayOps(OpLibrary& lib) {
  RegisterAssert(lib);
  RegisterConcatOps(lib);
  RegisterConstantOps(lib);
  RegisterDepthSpaceOps(lib);
  RegisterGatherNd(lib);
  RegisterGatherOps(lib);
  RegisterIdentityOps(lib);
  RegisterOneHot(lib);
  RegisterPadOps(lib);
  RegisterPlaceholderOps(lib);
  RegisterRange(lib);
  RegisterReshapeOps(lib);
  RegisterReverse(lib);
  RegisterShapeOps(lib);
  RegisterSlice(lib);
  RegisterSplitOps(lib);
  RegisterStridedSlice(lib);
  RegisterTileOps(lib);
  RegisterTopK(lib);
  RegisterTransposeOps(lib);
  RegisterUniqueOps(lib);
  RegisterWhere(lib);
}

}  // namespace thalweg
