// The parts of the variant family, one function per source file; register.cc lists them.
#pragma once

#include <vector>

#include "thalweg/ops/common/dtype_sets.h"
#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterListElementOps(OpLibrary& lib);  // lists, and one element at a time
void RegisterListBulkOps(OpLibrary& lib);     // many elements at once
void RegisterListConcatOps(OpLibrary& lib);   // elements of different lengths
void RegisterOptionalOps(OpLibrary& lib);
void RegisterVariantArithmetic(OpLibrary& lib);

// The element types of lists that TensorFlow's CPU kernels read.
inline std::vector<DType> ListElementTypes() {
  return PlainTypesAnd({DType::kString, DType::kQInt8, DType::kQUInt8, DType::kQInt16, DType::kQUInt16, DType::kQInt32,
                        DType::kVariant});
}

}  // namespace thalweg
