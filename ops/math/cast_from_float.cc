#include "thalweg/ops/math/cast_loops.h"

namespace thalweg::math {

const ElementwiseDef* CastFromFloat(DType from, DType to) {
  switch (from) {
    case DType::kFloat32: return CastsFrom<float>(to);
    case DType::kFloat64: return CastsFrom<double>(to);
    case DType::kComplex64: return CastsFrom<std::complex<float>>(to);
    case DType::kComplex128: return CastsFrom<std::complex<double>>(to);
    default: return nullptr;
  }
}

}  // namespace thalweg::math
