#include "thalweg/ops/nn/layout.h"

#include <algorithm>

namespace thalweg {
namespace {

// Both sides of a tile of this many rows and columns fit into the first-level cache.
constexpr int64_t kTile = 32;

template <typename T>
void TransposeTile(const T* in, int64_t rows, int64_t cols, int64_t row, int64_t col, T* out) {
  const int64_t row_end = std::min(rows, row + kTile), col_end = std::min(cols, col + kTile);
  for (int64_t c = col; c < col_end; ++c) {
    for (int64_t r = row; r < row_end; ++r) out[c * rows + r] = in[r * cols + c];
  }
}

// Transposes `batch` dense matrices of rows x cols each.
template <typename T>
void TransposeAll(KernelContext& ctx, int64_t batch, int64_t rows, int64_t cols, const T* in, T* out) {
  const int64_t down = (rows + kTile - 1) / kTile, across = (cols + kTile - 1) / kTile;
  ctx.ParallelFor(batch * down * across, 0.5 * kTile * kTile, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t offset = i / (down * across) * rows * cols;
      TransposeTile(in + offset, rows, cols, i / across % down * kTile, i % across * kTile, out + offset);
    }
  });
}

struct Bytes16 {
  uint64_t half[2];
};

void Transpose(KernelContext& ctx, size_t element, int64_t batch, int64_t rows, int64_t cols, const void* in,
               void* out) {
  if (batch * rows * cols == 0) return;
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    TransposeAll(ctx, batch, rows, cols, static_cast<const T*>(in), static_cast<T*>(out));
  };
  switch (element) {
    case 1: return run(uint8_t{});
    case 2: return run(uint16_t{});
    case 4: return run(uint32_t{});
    case 8: return run(uint64_t{});
    default: return run(Bytes16{});
  }
}

// Moves one dimension; the element count stays, so the shape is valid.
Shape MoveDim(const Shape& shape, int from, int to) {
  Dims dims(shape.dims().begin(), shape.dims().end());
  const int64_t moved = dims[from];
  dims.erase(dims.begin() + from);
  dims.insert(dims.begin() + to, moved);
  return *Shape::Make(dims);
}

}  // namespace

Shape ChannelsLastShape(const Shape& channels_first) { return MoveDim(channels_first, 1, channels_first.rank() - 1); }
Shape ChannelsFirstShape(const Shape& channels_last) { return MoveDim(channels_last, channels_last.rank() - 1, 1); }

absl::StatusOr<Tensor> ToChannelsLast(KernelContext& ctx, const Tensor& t) {
  THALWEG_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(t.dtype(), ChannelsLastShape(t.shape())));
  Transpose(ctx, DTypeSize(t.dtype()), t.dim(0), t.dim(1), t.shape().NumElements(2, t.rank()), t.raw(),
            out.mutable_raw());
  return out;
}

void StoreChannelsFirst(KernelContext& ctx, const Tensor& t, Tensor* out) {
  Transpose(ctx, DTypeSize(t.dtype()), t.dim(0), t.shape().NumElements(1, t.rank() - 1), t.dim(t.rank() - 1), t.raw(),
            out->mutable_raw());
}

}  // namespace thalweg
