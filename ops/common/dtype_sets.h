// Sets of element types that many kernels are registered for, as TensorFlow's CPU kernels are.
#pragma once

#include <initializer_list>
#include <vector>

#include "thalweg/proto/dtype.h"

namespace thalweg {

// float16 to float64, all plain integers, bool, complex numbers: what has arithmetic, and bool.
inline std::vector<DType> PlainTypes() {
  return {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16,  DType::kInt8,
          DType::kInt16,   DType::kInt32,   DType::kInt64,   DType::kUInt8,     DType::kUInt16,
          DType::kUInt32,  DType::kUInt64,  DType::kBool,    DType::kComplex64, DType::kComplex128};
}

// PlainTypes() and others.
inline std::vector<DType> PlainTypesAnd(std::initializer_list<DType> more) {
  std::vector<DType> types = PlainTypes();
  types.insert(types.end(), more.begin(), more.end());
  return types;
}

// What most kernels that only move elements take: PlainTypes(), strings, handles and variants.
inline std::vector<DType> MovableTypes() { return PlainTypesAnd({DType::kString, DType::kResource, DType::kVariant}); }

}  // namespace thalweg
