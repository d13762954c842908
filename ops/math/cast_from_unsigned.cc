#include "thalweg/ops/math/cast_loops.h"

namespace thalweg::math {

const ElementwiseDef* CastFromUnsigned(DType from, DType to) {
  switch (from) {
    case DType::kBool: return CastsFrom<bool>(to);
    case DType::kUInt8: return CastsFrom<uint8_t>(to);
    case DType::kUInt16: return CastsFrom<uint16_t>(to);
    case DType::kUInt32: return CastsFrom<uint32_t>(to);
    case DType::kUInt64: return CastsFrom<uint64_t>(to);
    default: return nullptr;
  }
}

}  // namespace thalweg::math
