// How data-movement code handles elements: by size and kind of object, never by dtype.
//
// A cell type has kBytes and static functions that copy one element or a run of adjacent ones between untyped
// addresses. Plain elements of one size share a cell, so a driver is compiled five times for all numbers (1, 2, 4, 8,
// 16 bytes) and three times for objects. Plain addresses need no alignment. Destination objects must have been
// constructed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/ops/common/storage_convert.h"
#include "thalweg/proto/dtype.h"

namespace thalweg {

template <size_t kSize>
struct PlainCell {
  static constexpr int64_t kBytes = kSize;
  static constexpr bool kPlain = true;
  static void Copy(char* dst, const char* src) { std::memcpy(dst, src, kSize); }
  static void CopyRun(char* dst, const char* src, int64_t count) { std::memcpy(dst, src, count * kBytes); }
};

template <typename T>
struct ObjectCell {
  static constexpr int64_t kBytes = sizeof(T);
  static constexpr bool kPlain = false;
  static void Copy(char* dst, const char* src) { *reinterpret_cast<T*>(dst) = *reinterpret_cast<const T*>(src); }
  static void CopyRun(char* dst, const char* src, int64_t count) {
    std::copy_n(reinterpret_cast<const T*>(src), count, reinterpret_cast<T*>(dst));
  }
};

// Calls fn(cell) with the cell of plain elements of `bytes` bytes, which must be 1, 2, 4, 8 or 16.
template <typename Fn>
void WithPlainCell(size_t bytes, Fn&& fn) {
  switch (bytes) {
    case 1: return fn(PlainCell<1>());
    case 2: return fn(PlainCell<2>());
    case 4: return fn(PlainCell<4>());
    case 8: return fn(PlainCell<8>());
    default: return fn(PlainCell<16>());
  }
}

// Calls fn(cell) with the cell of a valid dtype.
template <typename Fn>
void WithCell(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kString: return fn(ObjectCell<std::string>());
    case DType::kResource: return fn(ObjectCell<ResourceHandle>());
    case DType::kVariant: return fn(ObjectCell<Variant>());
    default: return WithPlainCell(DTypeSize(dtype), std::forward<Fn>(fn));
  }
}

// The address of element `index` in row-major order; one past the last is fine.
inline const void* ElementAt(const Tensor& t, int64_t index) {
  return static_cast<const char*>(t.raw()) + index * static_cast<int64_t>(ElementBytes(t.dtype()));
}
inline void* MutableElementAt(Tensor& t, int64_t index) {
  return static_cast<char*>(t.mutable_raw()) + index * static_cast<int64_t>(ElementBytes(t.dtype()));
}

}  // namespace thalweg
