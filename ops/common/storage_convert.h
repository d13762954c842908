// Conversions between the types that tensors are stored in and the types that kernels compute in.
//
// half, bfloat16 and float8 compute in float, 4-bit integers in int32; bool, the plain and the quantized integers compute
// in the plain type of the same bytes. Rounding is to nearest, ties to even; half keeps its denormals even while float
// denormals are flushed (L15). All functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thalweg/proto/dtype.h"

namespace thalweg {

// Converts n elements; `in` and `out` do not overlap.
using ConvertLoop = void (*)(const void* in, void* out, int64_t n);

// Null if the two types are the same in memory. Requires that they are that or one of the pairs named above.
ConvertLoop LoadConversion(DType storage, DType computing);
ConvertLoop StoreConversion(DType computing, DType storage);

void HalfToFloat(const half* in, float* out, int64_t n);
void FloatToHalf(const float* in, half* out, int64_t n);
void BFloat16ToFloat(const bfloat16* in, float* out, int64_t n);
void FloatToBFloat16(const float* in, bfloat16* out, int64_t n);

// Bytes from one element to the next in memory, objects (strings, handles) included.
size_t ElementBytes(DType type);

}  // namespace thalweg
