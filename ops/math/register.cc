#include "thalweg/ops/math/register.h"

#include "thalweg/ops/math/register_internal.h"

namespace thalweg {

void RegisterMathOps(OpLibrary& lib) {
  math::RegisterAddOps(lib);
  math::RegisterAddNOp(lib);
  math::RegisterMultiplyOps(lib);
  math::RegisterExtremumOps(lib);
  math::RegisterIntegerDivisionOps(lib);
  math::RegisterPowOp(lib);
  math::RegisterEqualityOps(lib);
  math::RegisterOrderOps(lib);
  math::RegisterLogicalOps(lib);
  math::RegisterSignOps(lib);
  math::RegisterRoundingOps(lib);
  math::RegisterTranscendentalOps(lib);
  math::RegisterComplexTranscendentalOps(lib);
  math::RegisterActivationOps(lib);
  math::RegisterGradientOps(lib);
  math::RegisterTrigonometricOps(lib);
  math::RegisterBitwiseOps(lib);
  math::RegisterComplexOps(lib);
  math::RegisterGuardedOps(lib);
  math::RegisterClipOp(lib);
  math::RegisterSpecialOps(lib);
  math::RegisterCastOp(lib);
  math::RegisterSelectOps(lib);
  math::RegisterLikeOps(lib);
  math::RegisterCheckNumericsOp(lib);
  math::RegisterSumOps(lib);
  math::RegisterMaxOps(lib);
  math::RegisterArgExtremumOps(lib);
  math::RegisterScanOps(lib);
  math::RegisterSegmentOps(lib);
  math::RegisterBincountOps(lib);
  math::RegisterFusedElementwiseOp(lib);
}

}  // namespace thalweg
