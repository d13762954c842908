// Many matrix products of one size, spread over the session's threads: whole products where there are enough of them, else
// tiles of each.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/common/gemm.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {

// Product i multiplies matrix a_index(i) of A with matrix b_index(i) of B into matrix i of C. `gemm` is the product of the
// first matrices; all are dense, one after the other. Requires m, n >= 1. Returns early when the step is cancelled.
template <typename T, typename IndexA, typename IndexB>
absl::Status BatchGemm(KernelContext& ctx, const GemmArgs<T>& gemm, int64_t batch, const IndexA& a_index, const IndexB& b_index) {
  const int threads = ctx.step().num_threads();
  const GemmTiles tiles = TileGemm(gemm.m, gemm.n, gemm.k, batch >= threads ? 1 : threads);
  FirstError error;
  ctx.ParallelFor(batch * tiles.count(), GemmNanos(DTypeOf<T>::value, tiles.rows, tiles.cols, gemm.k),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end && !ctx.step().cancelled(); ++i) {
                      const int64_t index = i / tiles.count();
                      GemmArgs<T> one = gemm;
                      one.a += a_index(index) * gemm.m * gemm.k;
                      one.b += b_index(index) * gemm.k * gemm.n;
                      one.c += index * gemm.m * gemm.n;
                      error.Update(GemmTile(one, tiles, i % tiles.count()));
                    }
                  });
  return error.status();
}

}  // namespace thalweg
