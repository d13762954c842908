#include "thalweg/ops/common/combine.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

template <typename T>
constexpr bool kIsComplex = false;
template <typename T>
constexpr bool kIsComplex<std::complex<T>> = true;

template <CombineOp op, typename T>
T CombineOne(T a, T b) {
  if constexpr (op == CombineOp::kMin || op == CombineOp::kMax) {
    return (op == CombineOp::kMin ? b < a : a < b) ? b : a;
  } else if constexpr (std::is_integral_v<T> && op == CombineOp::kDiv) {
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(uint64_t{0} - static_cast<uint64_t>(a));  // the lowest number wraps
    }
    return static_cast<T>(a / b);
  } else if constexpr (std::is_integral_v<T>) {
    const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(op == CombineOp::kAdd ? x + y : op == CombineOp::kSub ? x - y : x * y);
  } else {
    switch (op) {
      case CombineOp::kAdd: return a + b;
      case CombineOp::kSub: return a - b;
      case CombineOp::kMul: return a * b;
      default: return a / b;
    }
  }
}

template <CombineOp op, typename T>
absl::Status Loop(const void* a, const void* b, int64_t b_stride, void* out, int64_t n) {
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  T* z = static_cast<T*>(out);
  if constexpr (std::is_integral_v<T> && op == CombineOp::kDiv) {
    const int64_t divisors = b_stride == 0 ? std::min<int64_t>(n, 1) : n;
    if (std::find(y, y + divisors, T{0}) != y + divisors) return absl::InvalidArgumentError("integer division by zero");
  }
  if (b_stride == 0) {
    const T one = n > 0 ? *y : T();
    for (int64_t i = 0; i < n; ++i) z[i] = CombineOne<op>(x[i], one);
  } else {
    for (int64_t i = 0; i < n; ++i) z[i] = CombineOne<op>(x[i], y[i]);
  }
  return absl::OkStatus();
}

template <typename T>
CombineLoop LoopFor(CombineOp op) {
  switch (op) {
    case CombineOp::kAdd: return &Loop<CombineOp::kAdd, T>;
    case CombineOp::kSub: return &Loop<CombineOp::kSub, T>;
    case CombineOp::kMul: return &Loop<CombineOp::kMul, T>;
    case CombineOp::kDiv: return &Loop<CombineOp::kDiv, T>;
    case CombineOp::kMin:
    case CombineOp::kMax:
      break;
  }
  if constexpr (!kIsComplex<T>) return op == CombineOp::kMin ? &Loop<CombineOp::kMin, T> : &Loop<CombineOp::kMax, T>;
  return nullptr;
}

constexpr double kNanosPerElement = 0.5;

}  // namespace

CombineLoop FindCombineLoop(CombineOp op, DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return LoopFor<half>(op);
    case DType::kBFloat16: return LoopFor<bfloat16>(op);
    case DType::kFloat32: return LoopFor<float>(op);
    case DType::kFloat64: return LoopFor<double>(op);
    case DType::kInt8: return LoopFor<int8_t>(op);
    case DType::kInt16: return LoopFor<int16_t>(op);
    case DType::kInt32: return LoopFor<int32_t>(op);
    case DType::kInt64: return LoopFor<int64_t>(op);
    case DType::kUInt8: return LoopFor<uint8_t>(op);
    case DType::kUInt16: return LoopFor<uint16_t>(op);
    case DType::kUInt32: return LoopFor<uint32_t>(op);
    case DType::kUInt64: return LoopFor<uint64_t>(op);
    case DType::kComplex64: return LoopFor<std::complex<float>>(op);
    case DType::kComplex128: return LoopFor<std::complex<double>>(op);
    default: return nullptr;
  }
}

absl::Span<const DType> CombinableTypes() {
  static constexpr DType kTypes[] = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,   DType::kBFloat16, DType::kInt8,
                                     DType::kInt16,    DType::kInt32,   DType::kInt64,     DType::kUInt8,    DType::kUInt16,
                                     DType::kUInt32,   DType::kUInt64,  DType::kComplex64, DType::kComplex128};
  return kTypes;
}

absl::StatusOr<Tensor> SumOfTensors(KernelContext& ctx, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("values of ", DTypeName(a.dtype()), a.shape().ToString(), " and ",
                                                   DTypeName(b.dtype()), b.shape().ToString(), " cannot be added up"));
  }
  const CombineLoop add = FindCombineLoop(CombineOp::kAdd, a.dtype());
  if (add == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("values of type ", DTypeName(a.dtype()), " cannot be added up"));
  }
  // What lists and arrays hold is in host memory, whatever device their sums are made for.
  THALWEG_ASSIGN_OR_RETURN(Tensor sum, Tensor::Allocate(a.dtype(), a.shape(), ctx.host_allocator(), ctx.node().id));
  const int64_t size = static_cast<int64_t>(DTypeSize(a.dtype()));
  const char* x = static_cast<const char*>(a.raw());
  const char* y = static_cast<const char*>(b.raw());
  char* z = static_cast<char*>(sum.mutable_raw());
  ctx.ParallelFor(a.num_elements(), kNanosPerElement, [=](int64_t begin, int64_t end) {
    // Additions do not fail.
    add(x + begin * size, y + begin * size, 1, z + begin * size, end - begin).IgnoreError();
  });
  return sum;
}

}  // namespace thalweg
