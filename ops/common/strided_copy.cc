#include "thalweg/ops/common/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "thalweg/ops/common/element_cell.h"

namespace thalweg {
namespace {

// Rough costs, which decide only whether a second thread pays.
constexpr double kNanosPerCopiedByte = 0.1;  // contiguous memcpy out of cache
constexpr double kNanosPerScatteredCell = 1.0;
constexpr double kNanosPerObject = 20.0;

// A cache line's worth of cells in each direction is one tile of a transposition.
constexpr int64_t kTileBytes = 64;

// Drops dimensions of one element and merges neighbours that are one longer dimension in both source and destination.
void Collapse(CopyDims* dims) {
  size_t kept = 0;
  for (const CopyDim d : *dims) {
    if (d.extent == 1) continue;
    if (kept > 0) {
      CopyDim& outer = (*dims)[kept - 1];
      if (outer.src_stride == d.src_stride * d.extent && outer.dst_stride == d.dst_stride * d.extent) {
        outer = {outer.extent * d.extent, d.src_stride, d.dst_stride};
        continue;
      }
    }
    (*dims)[kept++] = d;
  }
  dims->resize(kept);
}

// A position in the index space of some outer dimensions, as byte offsets.
class Odometer {
 public:
  Odometer(absl::Span<const CopyDim> dims, int64_t start) : dims_(dims), index_(dims.size()) {
    for (size_t i = dims.size(); i-- > 0;) {
      index_[i] = start % dims[i].extent;
      start /= dims[i].extent;
      src_ += index_[i] * dims[i].src_stride;
      dst_ += index_[i] * dims[i].dst_stride;
    }
  }
  int64_t src() const { return src_; }
  int64_t dst() const { return dst_; }
  void Next() {
    for (size_t i = dims_.size(); i-- > 0;) {
      const CopyDim& d = dims_[i];
      src_ += d.src_stride;
      dst_ += d.dst_stride;
      if (++index_[i] < d.extent) return;
      index_[i] = 0;
      src_ -= d.extent * d.src_stride;
      dst_ -= d.extent * d.dst_stride;
    }
  }

 private:
  absl::Span<const CopyDim> dims_;
  Dims index_;
  int64_t src_ = 0;
  int64_t dst_ = 0;
};

int64_t Volume(absl::Span<const CopyDim> dims) {
  int64_t volume = 1;
  for (const CopyDim& d : dims) volume *= d.extent;
  return volume;
}

// Repeats one cell; the copy in a local lets the compiler use wide stores.
template <typename Cell>
void FillRun(int64_t count, const char* src, char* dst) {
  if constexpr (Cell::kBytes == 1) {
    std::memset(dst, *src, count);
  } else {
    char value[Cell::kBytes];
    Cell::Copy(value, src);
    for (int64_t i = 0; i < count; ++i) Cell::Copy(dst + i * Cell::kBytes, value);
  }
}

// One run along the innermost dimension.
template <typename Cell>
void CopyRow(const CopyDim& row, int64_t count, const char* src, char* dst) {
  if (row.dst_stride == Cell::kBytes && row.src_stride == Cell::kBytes) {
    Cell::CopyRun(dst, src, count);
    return;
  }
  if constexpr (Cell::kPlain) {
    if (row.dst_stride == Cell::kBytes && row.src_stride == 0) return FillRun<Cell>(count, src, dst);
  }
  if (row.dst_stride == Cell::kBytes) {
    for (int64_t i = 0; i < count; ++i) Cell::Copy(dst + i * Cell::kBytes, src + i * row.src_stride);
  } else {
    for (int64_t i = 0; i < count; ++i) Cell::Copy(dst + i * row.dst_stride, src + i * row.src_stride);
  }
}

// Walks the space row by row. The split is by elements, so that one long row can be shared too.
template <typename Cell>
void CopyByRows(KernelContext& ctx, const CopyDims& dims, double nanos_per_cell, const char* src, char* dst) {
  const CopyDim row = dims.back();
  const absl::Span<const CopyDim> outer = absl::MakeConstSpan(dims).first(dims.size() - 1);
  ctx.ParallelFor(Volume(dims), nanos_per_cell, [&](int64_t begin, int64_t end) {
    Odometer at(outer, begin / row.extent);
    int64_t column = begin % row.extent;
    while (begin < end) {
      const int64_t count = std::min(row.extent - column, end - begin);
      CopyRow<Cell>(row, count, src + at.src() + column * row.src_stride, dst + at.dst() + column * row.dst_stride);
      begin += count;
      column = 0;
      at.Next();
    }
  });
}

// Copies rows [first, last) of a plane whose source runs along `rows` and whose destination runs along `columns`.
template <typename Cell>
void CopyTransposed(const CopyDim& rows, const CopyDim& columns, int64_t first, int64_t last, const char* src,
                    char* dst) {
  constexpr int64_t kTile = std::max<int64_t>(4, kTileBytes / Cell::kBytes);
  for (int64_t column = 0; column < columns.extent; column += kTile) {
    const int64_t tile_columns = std::min(kTile, columns.extent - column);
    for (int64_t row = first; row < last; row += kTile) {
      const int64_t tile_last = std::min(row + kTile, last);
      for (int64_t r = row; r < tile_last; ++r) {
        const char* from = src + r * Cell::kBytes + column * columns.src_stride;
        char* to = dst + r * rows.dst_stride + column * Cell::kBytes;
        for (int64_t c = 0; c < tile_columns; ++c) Cell::Copy(to + c * Cell::kBytes, from + c * columns.src_stride);
      }
    }
  }
}

// Walks planes of the two innermost dimensions in tiles. The split is by bands of rows, one tile high.
template <typename Cell>
void CopyByTiles(KernelContext& ctx, const CopyDims& dims, const char* src, char* dst) {
  const CopyDim columns = dims.back();
  const CopyDim rows = dims[dims.size() - 2];
  const absl::Span<const CopyDim> outer = absl::MakeConstSpan(dims).first(dims.size() - 2);
  constexpr int64_t kBand = std::max<int64_t>(4, kTileBytes / Cell::kBytes);
  const int64_t bands = (rows.extent + kBand - 1) / kBand;
  const double nanos_per_band = kNanosPerScatteredCell * kBand * columns.extent;
  ctx.ParallelFor(Volume(outer) * bands, nanos_per_band, [&](int64_t begin, int64_t end) {
    Odometer at(outer, begin / bands);
    int64_t band = begin % bands;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = band * kBand;
      CopyTransposed<Cell>(rows, columns, first, std::min(first + kBand, rows.extent), src + at.src(), dst + at.dst());
      if (++band == bands) {
        band = 0;
        at.Next();
      }
    }
  });
}

// Moves a dimension along which the source is contiguous next to the innermost one, along which the destination is, and
// returns true; false if this is no transposition. The order of loops is free.
template <typename Cell>
bool ArrangeAsTransposition(CopyDims* dims) {
  if (dims->size() < 2 || dims->back().dst_stride != Cell::kBytes ||
      std::abs(dims->back().src_stride) <= Cell::kBytes) {
    return false;
  }
  for (size_t i = dims->size() - 1; i-- > 0;) {
    if ((*dims)[i].src_stride != Cell::kBytes) continue;
    std::rotate(dims->begin() + i, dims->begin() + i + 1, dims->end() - 1);
    return true;
  }
  return false;
}

// `dims` with strides in bytes, collapsed, at least one dimension.
template <typename Cell>
void CopyCells(KernelContext& ctx, CopyDims dims, const char* src, char* dst) {
  const CopyDim& row = dims.back();
  if (!Cell::kPlain) return CopyByRows<Cell>(ctx, dims, kNanosPerObject, src, dst);
  if (row.dst_stride == Cell::kBytes && (row.src_stride == Cell::kBytes || row.src_stride == 0)) {
    return CopyByRows<Cell>(ctx, dims, kNanosPerCopiedByte * Cell::kBytes, src, dst);
  }
  if (ArrangeAsTransposition<Cell>(&dims)) return CopyByTiles<Cell>(ctx, dims, src, dst);
  CopyByRows<Cell>(ctx, dims, kNanosPerScatteredCell, src, dst);
}

// Takes a short contiguous innermost run for one larger cell, as in a transposition that leaves the last dimension of a
// few channels alone. Returns the size of a cell.
int64_t WidenCells(CopyDims* dims, int64_t cell_bytes) {
  const CopyDim& row = dims->back();
  if (dims->size() < 2 || row.src_stride != cell_bytes || row.dst_stride != cell_bytes || row.extent > 16) {
    return cell_bytes;
  }
  const int64_t run = row.extent * cell_bytes;
  if (run != 2 && run != 4 && run != 8 && run != 16) return cell_bytes;
  dims->pop_back();
  return run;
}

}  // namespace

void StridedCopy(KernelContext& ctx, DType dtype, CopyDims dims, const void* src, void* dst) {
  for (const CopyDim& d : dims) {
    if (d.extent == 0) return;
  }
  Collapse(&dims);
  if (dims.empty()) dims.push_back({1, 1, 1});
  const char* from = static_cast<const char*>(src);
  char* to = static_cast<char*>(dst);
  int64_t cell_bytes = static_cast<int64_t>(ElementBytes(dtype));
  for (CopyDim& d : dims) {
    d.src_stride *= cell_bytes;
    d.dst_stride *= cell_bytes;
  }
  if (!IsPlainMemory(dtype)) {
    WithCell(dtype, [&](auto cell) { CopyCells<decltype(cell)>(ctx, std::move(dims), from, to); });
    return;
  }
  cell_bytes = WidenCells(&dims, cell_bytes);
  WithPlainCell(cell_bytes, [&](auto cell) { CopyCells<decltype(cell)>(ctx, std::move(dims), from, to); });
}

void FillElements(KernelContext& ctx, DType dtype, const void* value, int64_t count, void* dst) {
  StridedCopy(ctx, dtype, {{count, 0, 1}}, value, dst);
}

Dims RowMajorStrides(const Shape& shape) {
  Dims strides(shape.rank());
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[i] = stride;
    // Strides left of an empty dimension are never used, and would be 0.
    stride *= shape.dim(i);
  }
  return strides;
}

}  // namespace thalweg
