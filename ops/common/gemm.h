// Matrix products for every element type that kernels multiply.
//
// float goes to oneDNN (but a single row times a matrix, which is bound by memory, to a loop of our own), double, integers and
// complex numbers to a blocked kernel of our own; integers wrap. Results do not depend on the number of threads.
#pragma once

#include <complex>
#include <cstdint>

#include "absl/status/status.h"
#include "thalweg/ops/kernel.h"

namespace thalweg {

// C = op(A) * op(B), row-major; op(A) is m x k, op(B) k x n; op transposes and, for complex numbers, may conjugate.
// Leading dimensions are in elements. C overlaps neither A nor B.
template <typename T>
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  int64_t lda = 0;
  bool transpose_a = false, conjugate_a = false;
  const T* b = nullptr;
  int64_t ldb = 0;
  bool transpose_b = false, conjugate_b = false;
  T* c = nullptr;
  int64_t ldc = 0;
};

// T is float, double, int16_t, int32_t, int64_t, std::complex<float> or std::complex<double>. Any size may be 0; k == 0
// gives zeros.
template <typename T>
absl::Status Gemm(const GemmArgs<T>& args);

// How to cut C into tiles that different threads may compute with the same bits as one.
struct GemmTiles {
  int64_t rows = 0, cols = 0;  // of a tile; the last ones may be smaller, but never a single row or column of many
  int64_t down = 0, across = 0;
  int64_t count() const { return down * across; }
};
GemmTiles TileGemm(int64_t m, int64_t n, int64_t k, int num_threads);

// Gemm of one tile, which lies at the place `index` names in row-major order of tiles.
template <typename T>
absl::Status GemmTile(const GemmArgs<T>& args, const GemmTiles& tiles, int64_t index);

// Does what the first float product of a process would otherwise wait for: some 50 ms in which oneDNN generates code. For
// kernels that will call Gemm, when they are made; does nothing for other types, and little from the second time on.
void PrepareGemm(DType computing);

// The time that m * n * k multiply-adds of this type take on one thread.
double GemmNanos(DType dtype, int64_t m, int64_t n, int64_t k);

}  // namespace thalweg
