#include "thalweg/ops/common/storage_convert.h"

#include <array>
#include <string>

#include "thalweg/devices/object.h"
#include "thalweg/ops/common/target_clones.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace thalweg {
namespace {

#if defined(__x86_64__)
// Eight at a time with the processor's own conversions; return how many elements they did.
__attribute__((target("avx,f16c"))) int64_t HalfToFloatF16c(const half* in, float* out, int64_t n) {
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    _mm256_storeu_ps(out + k, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + k))));
  }
  return k;
}
__attribute__((target("avx,f16c"))) int64_t FloatToHalfF16c(const float* in, half* out, int64_t n) {
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + k), _mm256_cvtps_ph(_mm256_loadu_ps(in + k), _MM_FROUND_TO_NEAREST_INT));
  }
  return k;
}
const bool kHasF16c = __builtin_cpu_supports("f16c");
#else
int64_t HalfToFloatF16c(const half*, float*, int64_t) { return 0; }
int64_t FloatToHalfF16c(const float*, half*, int64_t) { return 0; }
constexpr bool kHasF16c = false;
#endif

// Types of one byte: every value is in a table.
template <typename T>
void ByteTableToFloat(const void* in, void* out, int64_t n) {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values;
    for (int i = 0; i < 256; ++i) values[i] = static_cast<float>(T::FromBits(static_cast<uint8_t>(i)));
    return values;
  }();
  const uint8_t* bytes = static_cast<const uint8_t*>(in);
  float* to = static_cast<float*>(out);
  for (int64_t k = 0; k < n; ++k) to[k] = table[bytes[k]];
}

template <typename From, typename To>
void ConvertEach(const void* in, void* out, int64_t n) {
  const From* from = static_cast<const From*>(in);
  To* to = static_cast<To*>(out);
  for (int64_t k = 0; k < n; ++k) to[k] = To(from[k]);
}

template <typename From, typename To, void (*kConvert)(const From*, To*, int64_t)>
void Untyped(const void* in, void* out, int64_t n) {
  kConvert(static_cast<const From*>(in), static_cast<To*>(out), n);
}

}  // namespace

void HalfToFloat(const half* in, float* out, int64_t n) {
  for (int64_t k = kHasF16c ? HalfToFloatF16c(in, out, n) : 0; k < n; ++k) out[k] = static_cast<float>(in[k]);
}

void FloatToHalf(const float* in, half* out, int64_t n) {
  for (int64_t k = kHasF16c ? FloatToHalfF16c(in, out, n) : 0; k < n; ++k) out[k] = half(in[k]);
}

THALWEG_CLONES void BFloat16ToFloat(const bfloat16* in, float* out, int64_t n) {
  for (int64_t k = 0; k < n; ++k) out[k] = static_cast<float>(in[k]);
}

THALWEG_CLONES void FloatToBFloat16(const float* in, bfloat16* out, int64_t n) {
  for (int64_t k = 0; k < n; ++k) out[k] = bfloat16(in[k]);
}

ConvertLoop LoadConversion(DType storage, DType computing) {
  if (storage == computing) return nullptr;
  switch (storage) {
    case DType::kFloat16: return &Untyped<half, float, HalfToFloat>;
    case DType::kBFloat16: return &Untyped<bfloat16, float, BFloat16ToFloat>;
    case DType::kFloat8E5M2: return &ByteTableToFloat<float8_e5m2>;
    case DType::kFloat8E4M3FN: return &ByteTableToFloat<float8_e4m3fn>;
    case DType::kInt4: return &ConvertEach<int4, int>;
    case DType::kUInt4: return &ConvertEach<uint4, int>;
    default: return nullptr;
  }
}

ConvertLoop StoreConversion(DType computing, DType storage) {
  if (storage == computing) return nullptr;
  switch (storage) {
    case DType::kFloat16: return &Untyped<float, half, FloatToHalf>;
    case DType::kBFloat16: return &Untyped<float, bfloat16, FloatToBFloat16>;
    case DType::kFloat8E5M2: return &ConvertEach<float, float8_e5m2>;
    case DType::kFloat8E4M3FN: return &ConvertEach<float, float8_e4m3fn>;
    case DType::kInt4: return &ConvertEach<int, int4>;
    case DType::kUInt4: return &ConvertEach<int, uint4>;
    default: return nullptr;
  }
}

size_t ElementBytes(DType type) {
  switch (RemoveRef(type)) {
    case DType::kString: return sizeof(std::string);
    case DType::kResource: return sizeof(ResourceHandle);
    case DType::kVariant: return sizeof(Variant);
    default: return DTypeSize(type);
  }
}

}  // namespace thalweg
