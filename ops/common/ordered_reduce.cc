#include "thalweg/ops/common/ordered_reduce.h"

#include <algorithm>
#include <vector>

#include "thalweg/ops/common/box_walker.h"

namespace thalweg {
namespace {

// TensorFlow's vectors, in elements; its least number of rows that are folded as interleaved ones, and as how many.
constexpr int64_t kVector = 8;
constexpr int64_t kMinInterleaved = 16;
constexpr int64_t kInterleaved = 4;
constexpr int64_t kTile = 512;

using Dimensions = ReductionPlan::Dimensions;

// `rows` rows, `stride` elements apart, of which n elements each are folded into n accumulators that start from nothing.
struct Columns {
  const float* in;
  int64_t rows;
  int64_t stride;
};

void FoldInTurn(const ReduceDef& def, const Columns& columns, int64_t begin_row, int64_t n, float* accumulators) {
  for (int64_t row = begin_row; row < columns.rows; ++row) {
    def.fold_columns(columns.in + row * columns.stride, 1, accumulators, n);
  }
}

// Requires n <= kTile.
void FoldInterleaved(const ReduceDef& def, const Columns& columns, int64_t n, float* accumulators) {
  if (columns.rows < kMinInterleaved) return FoldInTurn(def, columns, 0, n, accumulators);
  alignas(64) float others[kInterleaved - 1][kTile];
  for (auto& other : others) def.init(other, n);
  const int64_t interleaved = columns.rows / kInterleaved * kInterleaved;
  for (int64_t row = 0; row < interleaved; ++row) {
    const int64_t lane = row % kInterleaved;
    def.fold_columns(columns.in + row * columns.stride, 1, lane == 0 ? accumulators : others[lane - 1], n);
  }
  for (const auto& other : others) def.merge(other, accumulators, n);
  FoldInTurn(def, columns, interleaved, n, accumulators);
}

// One run of `n` neighbouring outputs, the first of which is output `index` of all.
void ReduceColumns(const ReduceDef& def, Columns columns, int64_t index, int64_t n, float* out) {
  // Vectors of outputs start at multiples of their size and do not reach past the run.
  const int64_t vectors_begin = std::min(n, (kVector - index % kVector) % kVector);
  const int64_t vectors_end = vectors_begin + (n - vectors_begin) / kVector * kVector;
  alignas(64) float accumulators[kTile];
  for (int64_t at = 0; at < n;) {
    const bool vectors = at >= vectors_begin && at < vectors_end;
    const int64_t limit = vectors ? vectors_end : at < vectors_begin ? vectors_begin : n;
    const int64_t count = std::min(kTile, limit - at);
    const Columns part{columns.in + at, columns.rows, columns.stride};
    def.init(accumulators, count);
    if (vectors) FoldInterleaved(def, part, count, accumulators);
    else FoldInTurn(def, part, 0, count, accumulators);
    def.finish(accumulators, columns.rows, out + at, count);
    at += count;
  }
}

// Both sides of the kept dimension are reduced: for each inner position all outer ones.
void ReduceAround(const ReduceDef& def, const ReductionPlan& plan, const float* in, float* out) {
  const auto& outer = plan.reduced()[0];
  const auto& inner = plan.reduced()[1];
  const auto& kept = plan.kept()[0];
  def.init(out, kept.size);
  for (int64_t i = 0; i < inner.size; ++i) {
    for (int64_t o = 0; o < outer.size; ++o) def.fold_columns(in + o * outer.stride + i, kept.stride, out, kept.size);
  }
  def.finish(out, plan.reduced_count(), out, kept.size);
}

// What is reduced is brought together first.
void ReduceGathered(const ReduceDef& def, const ReductionPlan& plan, const float* in, float* out) {
  std::vector<float> row(plan.reduced_count());
  BoxWalker outputs(plan.kept());
  do {
    if (!row.empty()) {
      BoxWalker elements(plan.reduced());
      size_t k = 0;
      do row[k++] = in[outputs.offset() + elements.offset()];
      while (elements.Next());
    }
    float accumulator;
    def.fold_row(row.data(), plan.reduced_count(), &accumulator);
    def.finish(&accumulator, plan.reduced_count(), out++, 1);
  } while (outputs.Next());
}

}  // namespace

void ReduceInOrder(const ReduceDef& def, const ReductionPlan& plan, const float* in, float* out) {
  const Dimensions& reduced = plan.reduced();
  const Dimensions& kept = plan.kept();
  for (const auto& dim : kept) {
    if (dim.size == 0) return;
  }
  if (reduced.size() == 1 && reduced[0].stride == 1) {
    BoxWalker outputs(kept);
    do {
      float accumulator;
      def.fold_row(in + outputs.offset(), reduced[0].size, &accumulator);
      def.finish(&accumulator, reduced[0].size, out++, 1);
    } while (outputs.Next());
  } else if (reduced.size() == 1 && kept.size() <= 2) {
    const int64_t run = kept.back().size, runs = kept.size() == 2 ? kept[0].size : 1;
    for (int64_t r = 0; r < runs; ++r) {
      const float* first = in + (kept.size() == 2 ? r * kept[0].stride : 0);
      ReduceColumns(def, {first, reduced[0].size, reduced[0].stride}, r * run, run, out + r * run);
    }
  } else if (reduced.size() == 2 && kept.size() == 1) {
    ReduceAround(def, plan, in, out);
  } else {
    ReduceGathered(def, plan, in, out);
  }
}

}  // namespace thalweg
