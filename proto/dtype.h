// Element types of tensors: the enumeration, names, sizes, and the mapping between them and C++ types.
//
// The numbers equal those of the public GraphDef format; a reference type (an edge that carries a variable itself
// rather than its value) is the value type plus 100. All functions are pure and thread-safe.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/proto/export.h"
#include "thalweg/proto/numeric_types.h"

namespace thalweg {

enum class DType : int32_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQInt8 = 11,
  kQUInt8 = 12,
  kQInt32 = 13,
  kBFloat16 = 14,
  kQInt16 = 15,
  kQUInt16 = 16,
  kUInt16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kResource = 20,
  kVariant = 21,
  kUInt32 = 22,
  kUInt64 = 23,
  kFloat8E5M2 = 24,
  kFloat8E4M3FN = 25,
  kFloat8E4M3FNUZ = 26,
  kFloat8E4M3B11FNUZ = 27,
  kFloat8E5M2FNUZ = 28,
  kInt4 = 29,
  kUInt4 = 30,
  kInt2 = 31,
  kUInt2 = 32,
  kFloat4E2M1FN = 33,
};
inline constexpr int kMaxValueDType = 33;
inline constexpr int kRefDTypeOffset = 100;

inline bool IsRef(DType t) { return static_cast<int>(t) > kRefDTypeOffset; }
inline DType RemoveRef(DType t) { return IsRef(t) ? static_cast<DType>(static_cast<int>(t) - kRefDTypeOffset) : t; }
inline DType MakeRef(DType t) { return IsRef(t) ? t : static_cast<DType>(static_cast<int>(t) + kRefDTypeOffset); }

// True for a number that names an element type, reference types included; false for kInvalid.
THALWEG_EXPORT bool IsValidDType(int number);

// "float32", "int64", "string"; a reference type has the suffix "_ref". Never fails ("invalid(77)").
THALWEG_EXPORT std::string DTypeName(DType t);

// Accepts the names printed by DTypeName, the short forms of input grammar and op tables ("f32", "i64", "bf16", "str"),
// the attribute spellings ("float", "double", "half") and the protobuf names ("DT_FLOAT").
THALWEG_EXPORT absl::StatusOr<DType> ParseDType(absl::string_view text);

// "DT_FLOAT" and the like, as written in text graphs.
THALWEG_EXPORT std::string DTypeProtoName(DType t);

// Bytes of one element in memory; 0 for string, resource, variant (their elements are C++ objects) and kInvalid.
// 4-bit and 2-bit integers take one byte each.
inline size_t DTypeSize(DType t) {
  constexpr uint8_t kSizes[kMaxValueDType + 1] = {0, 4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2, 2,
                                                  2, 16, 2, 0, 0, 4, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const auto number = static_cast<uint32_t>(RemoveRef(t));
  return number <= kMaxValueDType ? kSizes[number] : 0;
}

// True if elements are plain bytes that memcpy may copy (everything but string, resource, variant).
inline bool IsPlainMemory(DType t) { return DTypeSize(t) > 0; }
THALWEG_EXPORT bool IsFloating(DType t);  // float16, bfloat16, float32, float64, float8 kinds
THALWEG_EXPORT bool IsInteger(DType t);   // signed and unsigned integers of 8 to 64 bits (not bool, not quantized)
THALWEG_EXPORT bool IsComplex(DType t);
THALWEG_EXPORT bool IsQuantized(DType t);

// Prints a list as "[float32, int32]".
THALWEG_EXPORT std::string DTypeListString(absl::Span<const DType> types);

// C++ element type -> DType. `DTypeOf<float>::value == DType::kFloat32`.
template <typename T> struct DTypeOf;
#define THALWEG_DTYPE_OF_(T, D) template <> struct DTypeOf<T> { static constexpr DType value = DType::D; };
THALWEG_DTYPE_OF_(float, kFloat32)
THALWEG_DTYPE_OF_(double, kFloat64)
THALWEG_DTYPE_OF_(int8_t, kInt8)
THALWEG_DTYPE_OF_(int16_t, kInt16)
THALWEG_DTYPE_OF_(int32_t, kInt32)
THALWEG_DTYPE_OF_(int64_t, kInt64)
THALWEG_DTYPE_OF_(uint8_t, kUInt8)
THALWEG_DTYPE_OF_(uint16_t, kUInt16)
THALWEG_DTYPE_OF_(uint32_t, kUInt32)
THALWEG_DTYPE_OF_(uint64_t, kUInt64)
THALWEG_DTYPE_OF_(bool, kBool)
THALWEG_DTYPE_OF_(half, kFloat16)
THALWEG_DTYPE_OF_(bfloat16, kBFloat16)
THALWEG_DTYPE_OF_(std::complex<float>, kComplex64)
THALWEG_DTYPE_OF_(std::complex<double>, kComplex128)
THALWEG_DTYPE_OF_(std::string, kString)
THALWEG_DTYPE_OF_(qint8, kQInt8)
THALWEG_DTYPE_OF_(quint8, kQUInt8)
THALWEG_DTYPE_OF_(qint16, kQInt16)
THALWEG_DTYPE_OF_(quint16, kQUInt16)
THALWEG_DTYPE_OF_(qint32, kQInt32)
THALWEG_DTYPE_OF_(float8_e5m2, kFloat8E5M2)
THALWEG_DTYPE_OF_(float8_e4m3fn, kFloat8E4M3FN)
THALWEG_DTYPE_OF_(int4, kInt4)
THALWEG_DTYPE_OF_(uint4, kUInt4)
#undef THALWEG_DTYPE_OF_

}  // namespace thalweg
