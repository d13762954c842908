#include "thalweg/ops/common/gemm.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>

#include "thalweg/ops/common/onednn.h"
#include "thalweg/ops/common/target_clones.h"

namespace thalweg {
namespace {

// The blocked product follows the usual scheme: a block of B (kDepth x kAcross) and a block of A (kDown x kDepth) are
// packed so that the micro-kernel reads both front to back; it keeps a kRows x kCols tile of C in registers.
constexpr int kVectorBytes = 64;
constexpr int64_t kDepth = 256;
constexpr int64_t kDown = 96;
constexpr int64_t kAcross = 512;

// Unsigned arithmetic makes integer overflow wrap; complex numbers are packed as a plane of real and one of imaginary
// parts.
template <typename T>
struct Packing {
  using Real = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
  static constexpr int kPlanes = 1;
  static constexpr int kRows = 6;
};
template <typename R>
struct Packing<std::complex<R>> {
  using Real = R;
  static constexpr int kPlanes = 2;
  static constexpr int kRows = 3;
};
template <typename T>
constexpr int kCols = kVectorBytes / sizeof(typename Packing<T>::Real);

template <typename T>
THALWEG_INLINE void StorePlanes(T value, bool conjugate, typename Packing<T>::Real* out, int plane_stride) {
  if constexpr (Packing<T>::kPlanes == 2) {
    out[0] = value.real();
    out[plane_stride] = conjugate ? -value.imag() : value.imag();
  } else {
    out[0] = static_cast<typename Packing<T>::Real>(value);
  }
}

// Packs `count` lanes (rows of op(A) or columns of op(B)) by `depth` into strips of `width` lanes, zeros filling the
// last. Lane l at depth p is at src[l * lane_stride + p * depth_stride].
template <typename T>
void PackStrips(const T* src, int64_t lane_stride, int64_t depth_stride, bool conjugate, int64_t count, int64_t depth,
                int width, typename Packing<T>::Real* out) {
  constexpr int kPlanes = Packing<T>::kPlanes;
  for (int64_t first = 0; first < count; first += width) {
    const int lanes = static_cast<int>(std::min<int64_t>(width, count - first));
    for (int64_t p = 0; p < depth; ++p, out += width * kPlanes) {
      const T* from = src + first * lane_stride + p * depth_stride;
      for (int l = 0; l < lanes; ++l) StorePlanes(from[l * lane_stride], conjugate, out + l, width);
      for (int l = lanes; l < width; ++l) StorePlanes(T(0), false, out + l, width);
    }
  }
}

// acc (kRows x planes x kCols) = strip of A * strip of B over `depth`.
template <typename T>
THALWEG_INLINE void MultiplyStrips(int64_t depth, const typename Packing<T>::Real* a,
                                   const typename Packing<T>::Real* b, typename Packing<T>::Real* acc) {
  using Real = typename Packing<T>::Real;
  typedef Real Vector __attribute__((vector_size(kVectorBytes)));
  constexpr int kRows = Packing<T>::kRows;
  if constexpr (Packing<T>::kPlanes == 1) {
    Vector sum[kRows] = {};
    for (int64_t p = 0; p < depth; ++p, a += kRows, b += kCols<T>) {
      Vector right;
      std::memcpy(&right, b, sizeof(right));
      for (int r = 0; r < kRows; ++r) sum[r] += a[r] * right;
    }
    std::memcpy(acc, sum, sizeof(sum));
  } else {
    Vector real[kRows] = {}, imag[kRows] = {};
    for (int64_t p = 0; p < depth; ++p, a += 2 * kRows, b += 2 * kCols<T>) {
      Vector right_real, right_imag;
      std::memcpy(&right_real, b, sizeof(right_real));
      std::memcpy(&right_imag, b + kCols<T>, sizeof(right_imag));
      for (int r = 0; r < kRows; ++r) {
        real[r] += a[r] * right_real;
        real[r] -= a[kRows + r] * right_imag;
        imag[r] += a[r] * right_imag;
        imag[r] += a[kRows + r] * right_real;
      }
    }
    for (int r = 0; r < kRows; ++r) {
      std::memcpy(acc + (2 * r) * kCols<T>, &real[r], sizeof(Vector));
      std::memcpy(acc + (2 * r + 1) * kCols<T>, &imag[r], sizeof(Vector));
    }
  }
}

// One clone per element type; the name selects by overload.
#define THALWEG_MICRO_KERNEL_(T)                                                                   \
  THALWEG_CLONES void MicroKernel(std::type_identity<T>, int64_t depth, const Packing<T>::Real* a, \
                                  const Packing<T>::Real* b, Packing<T>::Real* acc) {              \
    MultiplyStrips<T>(depth, a, b, acc);                                                           \
  }
THALWEG_MICRO_KERNEL_(double)
THALWEG_MICRO_KERNEL_(int16_t)
THALWEG_MICRO_KERNEL_(int32_t)
THALWEG_MICRO_KERNEL_(int64_t)
THALWEG_MICRO_KERNEL_(std::complex<float>)
THALWEG_MICRO_KERNEL_(std::complex<double>)
#undef THALWEG_MICRO_KERNEL_

// Adds (or, for the first block of depth, writes) the part of an accumulator tile that lies inside C.
template <typename T>
void AddTile(const typename Packing<T>::Real* acc, int rows, int cols, bool first, T* c, int64_t ldc) {
  using Real = typename Packing<T>::Real;
  for (int r = 0; r < rows; ++r) {
    T* row = c + r * ldc;
    for (int j = 0; j < cols; ++j) {
      if constexpr (Packing<T>::kPlanes == 2) {
        const T value(acc[(2 * r) * kCols<T> + j], acc[(2 * r + 1) * kCols<T> + j]);
        row[j] = first ? value : row[j] + value;
      } else {
        const Real value = acc[r * kCols<T> + j];
        row[j] = static_cast<T>(first ? value : static_cast<Real>(static_cast<Real>(row[j]) + value));
      }
    }
  }
}

template <typename Real>
struct FreeAligned {
  void operator()(Real* p) const { ::operator delete[](p, std::align_val_t(kVectorBytes)); }
};
template <typename Real>
using AlignedArray = std::unique_ptr<Real[], FreeAligned<Real>>;
template <typename Real>
AlignedArray<Real> MakeAligned(int64_t count) {
  return AlignedArray<Real>(
      static_cast<Real*>(::operator new[](count * sizeof(Real), std::align_val_t(kVectorBytes), std::nothrow)));
}

int64_t RoundUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

// Multiplies one packed block of A by one packed block of B into C.
template <typename T>
void MultiplyBlocks(const typename Packing<T>::Real* a, int64_t rows, const typename Packing<T>::Real* b, int64_t cols,
                    int64_t depth, bool first, T* c, int64_t ldc) {
  using Real = typename Packing<T>::Real;
  constexpr int kRows = Packing<T>::kRows;
  constexpr int kPlanes = Packing<T>::kPlanes;
  alignas(kVectorBytes) Real acc[kRows * kPlanes * kCols<T>];
  for (int64_t j = 0; j < cols; j += kCols<T>) {
    for (int64_t i = 0; i < rows; i += kRows) {
      MicroKernel(std::type_identity<T>(), depth, a + i * depth * kPlanes, b + j * depth * kPlanes, acc);
      AddTile<T>(acc, static_cast<int>(std::min<int64_t>(kRows, rows - i)),
                 static_cast<int>(std::min<int64_t>(kCols<T>, cols - j)), first, c + i * ldc + j, ldc);
    }
  }
}

template <typename T>
absl::Status BlockedGemm(const GemmArgs<T>& g) {
  using Real = typename Packing<T>::Real;
  constexpr int kPlanes = Packing<T>::kPlanes;
  const int64_t depth_block = std::min(kDepth, g.k);
  const AlignedArray<Real> a =
      MakeAligned<Real>(RoundUp(std::min(kDown, g.m), Packing<T>::kRows) * depth_block * kPlanes);
  const AlignedArray<Real> b = MakeAligned<Real>(RoundUp(std::min(kAcross, g.n), kCols<T>) * depth_block * kPlanes);
  if (!a || !b) return absl::ResourceExhaustedError("no memory for the packed blocks of a matrix product");
  const int64_t a_lane = g.transpose_a ? 1 : g.lda, a_depth = g.transpose_a ? g.lda : 1;
  const int64_t b_lane = g.transpose_b ? g.ldb : 1, b_depth = g.transpose_b ? 1 : g.ldb;
  for (int64_t j = 0; j < g.n; j += kAcross) {
    const int64_t cols = std::min(kAcross, g.n - j);
    for (int64_t p = 0; p < g.k; p += kDepth) {
      const int64_t depth = std::min(kDepth, g.k - p);
      PackStrips(g.b + j * b_lane + p * b_depth, b_lane, b_depth, g.conjugate_b, cols, depth, kCols<T>, b.get());
      for (int64_t i = 0; i < g.m; i += kDown) {
        const int64_t rows = std::min(kDown, g.m - i);
        PackStrips(g.a + i * a_lane + p * a_depth, a_lane, a_depth, g.conjugate_a, rows, depth, Packing<T>::kRows,
                   a.get());
        MultiplyBlocks<T>(a.get(), rows, b.get(), cols, depth, p == 0, g.c + i * g.ldc + j, g.ldc);
      }
    }
  }
  return absl::OkStatus();
}

// A row vector times a matrix: c = a * b with the n columns of b next to each other. Four rows of b at a time, so that c,
// of which a block stays in the first-level cache, is read and written less often.
THALWEG_CLONES void RowTimesMatrix(const float* a, int64_t a_step, const float* b, int64_t ldb, int64_t n, int64_t k,
                                   float* c) {
  constexpr int64_t kBlock = 4096;
  for (int64_t first = 0; first < n; first += kBlock, b += kBlock, c += kBlock) {
    const int64_t cols = std::min(kBlock, n - first);
    std::fill_n(c, cols, 0.0f);
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const float a0 = a[p * a_step], a1 = a[(p + 1) * a_step], a2 = a[(p + 2) * a_step], a3 = a[(p + 3) * a_step];
      const float* b0 = b + p * ldb;
      const float* b1 = b0 + ldb;
      const float* b2 = b1 + ldb;
      const float* b3 = b2 + ldb;
#pragma GCC ivdep
      for (int64_t j = 0; j < cols; ++j) c[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
    }
    for (; p < k; ++p) {
      const float factor = a[p * a_step];
      const float* row = b + p * ldb;
#pragma GCC ivdep
      for (int64_t j = 0; j < cols; ++j) c[j] += factor * row[j];
    }
  }
}

// Cuts `size` into at most `pieces` parts of equal size (the last may be smaller), none of them a single unit.
void Cut(int64_t size, int64_t pieces, int64_t* part, int64_t* count) {
  *part = std::max<int64_t>((size + pieces - 1) / pieces, 2);
  *count = (size + *part - 1) / *part;
  if (*count > 1 && size % *part == 1) ++*part;
  *count = (size + *part - 1) / *part;
  if (*count > 1 && size % *part == 1) {
    *part = size;
    *count = 1;
  }
}

}  // namespace

template <typename T>
absl::Status Gemm(const GemmArgs<T>& g) {
  if (g.m == 0 || g.n == 0) return absl::OkStatus();
  if (g.k == 0) {
    for (int64_t i = 0; i < g.m; ++i) std::fill_n(g.c + i * g.ldc, g.n, T(0));
    return absl::OkStatus();
  }
  if constexpr (std::is_same_v<T, float>) {
    if (g.m == 1 && !g.transpose_b) {
      RowTimesMatrix(g.a, g.transpose_a ? g.lda : 1, g.b, g.ldb, g.n, g.k, g.c);
      return absl::OkStatus();
    }
    return onednn::Sgemm(g.transpose_a, g.transpose_b, g.m, g.n, g.k, g.a, g.lda, g.b, g.ldb, g.c, g.ldc);
  } else {
    return BlockedGemm(g);
  }
}

GemmTiles TileGemm(int64_t m, int64_t n, int64_t k, int num_threads) {
  // Below this a second thread does not pay for being woken.
  constexpr double kSmallestTile = 1e6;
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(std::max<int64_t>(k, 1));
  const int64_t pieces = std::clamp<int64_t>(static_cast<int64_t>(work / kSmallestTile), 1, num_threads);
  GemmTiles tiles{m, n, 1, 1};
  if (pieces == 1 || m == 0 || n == 0) return tiles;
  if (m >= n) Cut(m, pieces, &tiles.rows, &tiles.down);
  else Cut(n, pieces, &tiles.cols, &tiles.across);
  return tiles;
}

template <typename T>
absl::Status GemmTile(const GemmArgs<T>& args, const GemmTiles& tiles, int64_t index) {
  const int64_t row = index / tiles.across * tiles.rows, col = index % tiles.across * tiles.cols;
  GemmArgs<T> tile = args;
  tile.m = std::min(tiles.rows, args.m - row);
  tile.n = std::min(tiles.cols, args.n - col);
  tile.a += row * (args.transpose_a ? 1 : args.lda);
  tile.b += col * (args.transpose_b ? args.ldb : 1);
  tile.c += row * args.ldc + col;
  return Gemm(tile);
}

void PrepareGemm(DType computing) {
  if (computing != DType::kFloat32) return;
  static std::once_flag once;
  std::call_once(once, [] {
    const float ones[4] = {1, 1, 1, 1};
    float product[4];
    // A single column has code of its own. If this fails, the first product will say so.
    onednn::Sgemm(false, false, 2, 2, 2, ones, 2, ones, 2, product, 2).IgnoreError();
    onednn::Sgemm(false, false, 2, 1, 2, ones, 2, ones, 1, product, 1).IgnoreError();
  });
}

double GemmNanos(DType dtype, int64_t m, int64_t n, int64_t k) {
  // Multiply-adds per nanosecond, about half of what one core with 512-bit vectors reaches.
  const double rate = dtype == DType::kFloat64 || dtype == DType::kComplex64  ? 10
                      : dtype == DType::kComplex128 || dtype == DType::kInt64 ? 4
                                                                              : 30;
  constexpr double kPerCall = 200;
  return kPerCall + static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / rate;
}

#define THALWEG_INSTANTIATE_(T)                      \
  template absl::Status Gemm<T>(const GemmArgs<T>&); \
  template absl::Status GemmTile<T>(const GemmArgs<T>&, const GemmTiles&, int64_t);
THALWEG_INSTANTIATE_(float)
THALWEG_INSTANTIATE_(double)
THALWEG_INSTANTIATE_(int16_t)
THALWEG_INSTANTIATE_(int32_t)
THALWEG_INSTANTIATE_(int64_t)
THALWEG_INSTANTIATE_(std::complex<float>)
THALWEG_INSTANTIATE_(std::complex<double>)
#undef THALWEG_INSTANTIATE_

}  // namespace thalweg
