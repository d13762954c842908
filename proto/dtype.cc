#include "thalweg/proto/dtype.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

namespace thalweg {
namespace {

enum Class : uint8_t { kNone, kFloat, kInt, kCplx, kQuant, kOther };

struct Info {
  const char* name;        // printed
  const char* short_name;  // input grammar, op tables
  const char* attr_name;   // spelling in op declarations where it differs from `name`
  const char* proto_name;
  Class kind;
};

constexpr Info kInfo[kMaxValueDType + 1] = {
    {"invalid", "", "", "DT_INVALID", kNone},
    {"float32", "f32", "float", "DT_FLOAT", kFloat},
    {"float64", "f64", "double", "DT_DOUBLE", kFloat},
    {"int32", "i32", "", "DT_INT32", kInt},
    {"uint8", "u8", "", "DT_UINT8", kInt},
    {"int16", "i16", "", "DT_INT16", kInt},
    {"int8", "i8", "", "DT_INT8", kInt},
    {"string", "str", "", "DT_STRING", kOther},
    {"complex64", "c64", "", "DT_COMPLEX64", kCplx},
    {"int64", "i64", "", "DT_INT64", kInt},
    {"bool", "b", "", "DT_BOOL", kOther},
    {"qint8", "", "", "DT_QINT8", kQuant},
    {"quint8", "", "", "DT_QUINT8", kQuant},
    {"qint32", "", "", "DT_QINT32", kQuant},
    {"bfloat16", "bf16", "", "DT_BFLOAT16", kFloat},
    {"qint16", "", "", "DT_QINT16", kQuant},
    {"quint16", "", "", "DT_QUINT16", kQuant},
    {"uint16", "u16", "", "DT_UINT16", kInt},
    {"complex128", "c128", "", "DT_COMPLEX128", kCplx},
    {"float16", "f16", "half", "DT_HALF", kFloat},
    {"resource", "", "", "DT_RESOURCE", kOther},
    {"variant", "", "", "DT_VARIANT", kOther},
    {"uint32", "u32", "", "DT_UINT32", kInt},
    {"uint64", "u64", "", "DT_UINT64", kInt},
    {"float8_e5m2", "", "", "DT_FLOAT8_E5M2", kFloat},
    {"float8_e4m3fn", "", "", "DT_FLOAT8_E4M3FN", kFloat},
    {"float8_e4m3fnuz", "", "", "DT_FLOAT8_E4M3FNUZ", kFloat},
    {"float8_e4m3b11fnuz", "", "", "DT_FLOAT8_E4M3B11FNUZ", kFloat},
    {"float8_e5m2fnuz", "", "", "DT_FLOAT8_E5M2FNUZ", kFloat},
    {"int4", "i4", "", "DT_INT4", kOther},
    {"uint4", "u4", "", "DT_UINT4", kOther},
    {"int2", "i2", "", "DT_INT2", kOther},
    {"uint2", "u2", "", "DT_UINT2", kOther},
    {"float4_e2m1fn", "", "", "DT_FLOAT4_E2M1FN", kFloat},
};

const Info* Find(DType t) {
  const int n = static_cast<int>(RemoveRef(t));
  return n >= 1 && n <= kMaxValueDType ? &kInfo[n] : nullptr;
}

Class ClassOf(DType t) {
  const Info* info = Find(t);
  return info ? info->kind : kNone;
}

}  // namespace

bool IsValidDType(int number) {
  const int value = number > kRefDTypeOffset ? number - kRefDTypeOffset : number;
  return value >= 1 && value <= kMaxValueDType;
}

std::string DTypeName(DType t) {
  const Info* info = Find(t);
  if (info == nullptr) return absl::StrCat("invalid(", static_cast<int>(t), ")");
  return IsRef(t) ? absl::StrCat(info->name, "_ref") : info->name;
}

std::string DTypeProtoName(DType t) {
  const Info* info = Find(t);
  if (info == nullptr) return "DT_INVALID";
  return IsRef(t) ? absl::StrCat(info->proto_name, "_REF") : info->proto_name;
}

absl::StatusOr<DType> ParseDType(absl::string_view text) {
  absl::string_view base = text;
  const bool ref = absl::ConsumeSuffix(&base, "_ref") || absl::ConsumeSuffix(&base, "_REF");
  for (int n = 1; n <= kMaxValueDType; ++n) {
    const Info& info = kInfo[n];
    const bool named =
        base == info.name || base == info.short_name || base == info.attr_name || base == info.proto_name;
    if (named && !base.empty()) {
      return ref ? MakeRef(static_cast<DType>(n)) : static_cast<DType>(n);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not an element type; known are float32 (f32), int32 (i32), ",
                   "uint8 (u8), bool, string and so on: thalweg help dtypes lists them"));
}

bool IsFloating(DType t) { return ClassOf(t) == kFloat; }
bool IsInteger(DType t) { return ClassOf(t) == kInt; }
bool IsComplex(DType t) { return ClassOf(t) == kCplx; }
bool IsQuantized(DType t) { return ClassOf(t) == kQuant; }

std::string DTypeListString(absl::Span<const DType> types) {
  const auto append_name = [](std::string* out, DType t) { absl::StrAppend(out, DTypeName(t)); };
  return absl::StrCat("[", absl::StrJoin(types, ", ", append_name), "]");
}

}  // namespace thalweg
