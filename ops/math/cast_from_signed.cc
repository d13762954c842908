#include "thalweg/ops/math/cast_loops.h"

namespace thalweg::math {

const ElementwiseDef* CastFromSigned(DType from, DType to) {
  switch (from) {
    case DType::kInt8: return CastsFrom<int8_t>(to);
    case DType::kInt16: return CastsFrom<int16_t>(to);
    case DType::kInt32: return CastsFrom<int32_t>(to);
    case DType::kInt64: return CastsFrom<int64_t>(to);
    default: return nullptr;
  }
}

}  // namespace thalweg::math
