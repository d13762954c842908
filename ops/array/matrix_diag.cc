// Between matrices and their diagonals: MatrixDiag, MatrixDiagPart, MatrixSetDiag in three versions each, MatrixBandPart.
#include <algorithm>
#include <complex>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/diagonal_band.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// Input `i` as range of diagonals; without that input, the main one.
absl::StatusOr<DiagonalRange> ReadRange(const KernelContext& ctx, int i) {
  if (ctx.num_inputs() <= i) return DiagonalRange();
  const Tensor& k = ctx.input(i);
  if (k.rank() > 1) {
    return absl::InvalidArgumentError(absl::StrCat("k must be a scalar or a vector, but its shape is ", k.shape().ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(const Dims values, IntElementsArg(k, "k", 2));
  return RangeFrom(values);
}

// Copies the diagonals of `batch` matrices from or to their packed form, whose rows have `row_length` elements, no fewer than
// the longest diagonal. What of the band lies outside of the matrices is left alone.
template <bool kToMatrix>
void CopyDiagonals(KernelContext& ctx, DType dtype, const DiagonalBand& band, int64_t batch, int64_t row_length, const void* from,
                   void* to) {
  const int64_t matrix = band.rows * band.cols, packed = band.range.count() * row_length;
  WithCell(dtype, [&](auto cell) {
    using Cell = decltype(cell);
    ctx.ParallelFor(batch, 2.0 * static_cast<double>(packed), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        for (int64_t d = band.range.upper; d >= band.range.lower; --d) {
          const int64_t row = band.range.upper - d;
          int64_t in_matrix = b * matrix + band.Start(d);
          int64_t in_packed = b * packed + row * row_length + band.Padding(d, row_length);
          for (int64_t n = band.Length(d); n > 0; --n, in_matrix += band.cols + 1, ++in_packed) {
            const int64_t src = kToMatrix ? in_packed : in_matrix, dst = kToMatrix ? in_matrix : in_packed;
            Cell::Copy(static_cast<char*>(to) + dst * Cell::kBytes, static_cast<const char*>(from) + src * Cell::kBytes);
          }
        }
      }
    });
  });
}

// Fills a tensor with the scalar in input `i`, or with zeros where the op has no such input.
absl::Status FillPadding(KernelContext& ctx, int i, Tensor* out) {
  if (ctx.num_inputs() > i) {
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(i), "padding_value"));
    FillElements(ctx, out->dtype(), ctx.input(i).raw(), out->num_elements(), out->mutable_raw());
  } else if (IsPlainMemory(out->dtype())) {
    std::memset(out->mutable_raw(), 0, static_cast<size_t>(out->num_elements()) * DTypeSize(out->dtype()));
  }
  return absl::OkStatus();
}

// ---- MatrixDiag

// The matrix sizes for packed diagonals of this length, where wanted sizes may be -1: as small as possible.
absl::StatusOr<std::pair<int64_t, int64_t>> MatrixSize(const DiagonalRange& range, int64_t length, int64_t rows, int64_t cols) {
  const int64_t min_rows = length - std::min<int64_t>(range.upper, 0), min_cols = length + std::max<int64_t>(range.lower, 0);
  if (rows == -1 && cols == -1) {
    const int64_t size = std::max(min_rows, min_cols);
    return std::make_pair(size, size);
  }
  const int64_t use_rows = rows == -1 ? min_rows : rows, use_cols = cols == -1 ? min_cols : cols;
  if (use_rows < min_rows || use_cols < min_cols || (use_rows != min_rows && use_cols != min_cols)) {
    return absl::InvalidArgumentError(absl::StrCat("a matrix of ", use_rows, " rows and ", use_cols, " columns does not have diagonals ",
                                                   range.lower, " to ", range.upper, " of length ", length));
  }
  return std::make_pair(use_rows, use_cols);
}

// The shape of the matrices for packed diagonals of shape `diagonal`.
absl::StatusOr<Dims> DiagDims(absl::Span<const int64_t> diagonal, const DiagonalRange& range, int64_t rows, int64_t cols) {
  if (diagonal.empty()) return absl::InvalidArgumentError("diagonal must have at least rank 1, but it is a scalar");
  Dims dims(diagonal.begin(), diagonal.end());
  const int64_t length = dims.back();
  dims.pop_back();
  if (range.count() > 1) {
    if (dims.empty() || dims.back() != range.count()) {
      return absl::InvalidArgumentError(absl::StrCat("diagonal of shape ", PartialShape::OfDims(Dims(diagonal.begin(), diagonal.end())).ToString(),
                                                     " must have ", range.count(), " rows, one for each diagonal from ", range.lower,
                                                     " to ", range.upper));
    }
    dims.pop_back();
  }
  THALWEG_ASSIGN_OR_RETURN(const auto size, MatrixSize(range, length, rows, cols));
  dims.push_back(size.first);
  dims.push_back(size.second);
  return dims;
}

class MatrixDiagKernel : public Kernel {
 public:
  explicit MatrixDiagKernel(const KernelInit& init) : alignment_(AlignmentOf(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& diagonal = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const DiagonalRange range, ReadRange(ctx, 1));
    int64_t sizes[2] = {-1, -1};
    for (int i = 0; i < 2 && ctx.num_inputs() > 1; ++i) {
      THALWEG_ASSIGN_OR_RETURN(sizes[i], IntScalarArg(ctx.input(2 + i), i == 0 ? "num_rows" : "num_cols"));
    }
    THALWEG_ASSIGN_OR_RETURN(const Dims dims, DiagDims(diagonal.shape().dims(), range, sizes[0], sizes[1]));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    // Diagonals outside of the matrix are none of it: TensorFlow lets them be.
    DiagonalBand band{dims[dims.size() - 2], dims.back(), range, alignment_};
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    THALWEG_RETURN_IF_ERROR(FillPadding(ctx, 4, out));
    if (shape.num_elements() == 0) return absl::OkStatus();
    CopyDiagonals<true>(ctx, out->dtype(), band, shape.NumElements(0, shape.rank() - 2), diagonal.dim(diagonal.rank() - 1),
                        diagonal.raw(), out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  const BandAlignment alignment_;
};

absl::Status MatrixDiagShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  std::optional<std::vector<int64_t>> k = std::vector<int64_t>{0};
  std::optional<int64_t> rows = -1, cols = -1;
  if (c.num_inputs() > 1) {
    THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(1, 1));
    for (int i = 2; i < 5; ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
    k = c.input_ints(1);
    rows = c.input_int(2);
    cols = c.input_int(3);
  }
  const PartialShape& diagonal = c.input(0);
  if (!k || !diagonal.has_rank()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const DiagonalRange range, RangeFrom(*k));
  if (range.count() > 1) THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 2));
  const int lead = diagonal.rank() - (range.count() > 1 ? 2 : 1);
  Dims dims(diagonal.dims().begin(), diagonal.dims().begin() + lead);
  int64_t sizes[2] = {rows && *rows >= 0 ? *rows : kUnknownDim, cols && *cols >= 0 ? *cols : kUnknownDim};
  const int64_t length = diagonal.dim(diagonal.rank() - 1);
  if (rows && cols && IsKnownDim(length)) {
    THALWEG_ASSIGN_OR_RETURN(std::tie(sizes[0], sizes[1]), MatrixSize(range, length, *rows, *cols));
  } else if (rows == -1 && cols == -1 && range.lower == 0 && range.upper == 0) {
    sizes[0] = sizes[1] = length;  // a symbol stays one
  }
  dims.push_back(sizes[0]);
  dims.push_back(sizes[1]);
  return SetOutputDims(c, std::move(dims));
}

// ---- MatrixDiagPart

// The packed shape of the diagonals of matrices of shape `matrix`, which has at least rank 2.
Dims PackedDims(absl::Span<const int64_t> matrix, const DiagonalRange& range, int64_t length) {
  Dims dims(matrix.begin(), matrix.end() - 2);
  if (range.count() > 1) dims.push_back(range.count());
  dims.push_back(length);
  return dims;
}

absl::Status RequireMatrix(const Shape& shape) {
  if (shape.rank() >= 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input must have at least rank 2, but its shape is ", shape.ToString()));
}

// Requires at least rank 2.
absl::StatusOr<DiagonalBand> BandOf(const Shape& matrix, const DiagonalRange& range, BandAlignment alignment) {
  const DiagonalBand band{matrix.dim(matrix.rank() - 2), matrix.dim(matrix.rank() - 1), range, alignment};
  THALWEG_RETURN_IF_ERROR(CheckInside(range, band.rows, band.cols));
  return band;
}

class MatrixDiagPartKernel : public Kernel {
 public:
  explicit MatrixDiagPartKernel(const KernelInit& init) : alignment_(AlignmentOf(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_RETURN_IF_ERROR(RequireMatrix(in.shape()));
    THALWEG_ASSIGN_OR_RETURN(const DiagonalRange range, ReadRange(ctx, 1));
    THALWEG_ASSIGN_OR_RETURN(const DiagonalBand band, BandOf(in.shape(), range, alignment_));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(PackedDims(in.shape().dims(), range, band.MaxLength())));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    THALWEG_RETURN_IF_ERROR(FillPadding(ctx, 2, out));
    if (in.num_elements() == 0 || shape.num_elements() == 0) return absl::OkStatus();
    CopyDiagonals<false>(ctx, in.dtype(), band, in.shape().NumElements(0, in.rank() - 2), band.MaxLength(), in.raw(),
                         out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  const BandAlignment alignment_;
};

absl::Status MatrixDiagPartShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 2));
  std::optional<std::vector<int64_t>> k = std::vector<int64_t>{0};
  if (c.num_inputs() > 1) {
    THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(1, 1));
    THALWEG_RETURN_IF_ERROR(c.RequireScalar(2));
    k = c.input_ints(1);
  }
  const PartialShape& in = c.input(0);
  if (!k || !in.has_rank()) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(const DiagonalRange range, RangeFrom(*k));
  const DiagonalBand band{in.dim(in.rank() - 2), in.dim(in.rank() - 1), range, BandAlignment()};
  int64_t length = kUnknownDim;
  if (IsKnownDim(band.rows) && IsKnownDim(band.cols)) {
    THALWEG_RETURN_IF_ERROR(CheckInside(range, band.rows, band.cols));
    length = band.MaxLength();
  }
  return SetOutputDims(c, PackedDims(in.dims(), range, length));
}

// ---- MatrixSetDiag

class MatrixSetDiagKernel : public Kernel {
 public:
  explicit MatrixSetDiagKernel(const KernelInit& init) : alignment_(AlignmentOf(init.node().node_attrs())) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_RETURN_IF_ERROR(RequireMatrix(shape));
    THALWEG_ASSIGN_OR_RETURN(const DiagonalRange range, ReadRange(ctx, 2));
    THALWEG_ASSIGN_OR_RETURN(const DiagonalBand band, BandOf(shape, range, alignment_));
    const Tensor& diagonal = ctx.input(1);
    const Dims expected = PackedDims(shape.dims(), range, band.MaxLength());
    if (!std::equal(expected.begin(), expected.end(), diagonal.shape().dims().begin(), diagonal.shape().dims().end())) {
      return absl::InvalidArgumentError(absl::StrCat("diagonal has shape ", diagonal.shape().ToString(), ", but the diagonals of ",
                                                     shape.ToString(), " have shape ", PartialShape::OfDims(expected).ToString()));
    }
    const void* before = ctx.input(0).raw();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocateOutput({0}, 0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    if (out->raw() != before) StridedCopy(ctx, out->dtype(), {{shape.num_elements(), 1, 1}}, before, out->mutable_raw());
    CopyDiagonals<true>(ctx, out->dtype(), band, shape.NumElements(0, shape.rank() - 2), band.MaxLength(), diagonal.raw(),
                        out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  const BandAlignment alignment_;
};

absl::Status MatrixSetDiagShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(1, 1));
  std::optional<std::vector<int64_t>> k = std::vector<int64_t>{0};
  if (c.num_inputs() > 2) {
    THALWEG_RETURN_IF_ERROR(c.RequireRankAtMost(2, 1));
    k = c.input_ints(2);
  }
  const PartialShape& diagonal = c.input(1);
  // Leading dimensions of a single diagonal are those of the matrices.
  const bool single = k && !k->empty() && k->front() == k->back();
  if (!single || !diagonal.has_rank() || diagonal.rank() >= kMaxRank) return UnchangedShape(c);
  Dims dims(diagonal.dims().begin(), diagonal.dims().end() - 1);
  dims.resize(dims.size() + 2, kUnknownDim);
  THALWEG_ASSIGN_OR_RETURN(PartialShape out, ShapeContext::Merge(c.input(0), PartialShape::OfDims(std::move(dims))));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// ---- MatrixBandPart

// How far the band reaches below or above the main diagonal; all the way for any negative number (L24).
absl::StatusOr<int64_t> BandReach(const Tensor& t, absl::string_view name, int64_t size) {
  THALWEG_ASSIGN_OR_RETURN(const int64_t reach, IntScalarArg(t, name));
  if (reach <= size) return reach < 0 ? size : reach;
  return absl::InvalidArgumentError(absl::StrCat(name, " is ", reach, "; it must be negative or at most ", size));
}

class MatrixBandPartKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_RETURN_IF_ERROR(RequireMatrix(shape));
    const int64_t rows = shape.dim(shape.rank() - 2), cols = shape.dim(shape.rank() - 1);
    THALWEG_ASSIGN_OR_RETURN(const int64_t below, BandReach(ctx.input(1), "num_lower", rows));
    THALWEG_ASSIGN_OR_RETURN(const int64_t above, BandReach(ctx.input(2), "num_upper", cols));
    const Tensor in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t bytes = static_cast<int64_t>(DTypeSize(in.dtype()));
    const char* from = static_cast<const char*>(in.raw());
    char* to = static_cast<char*>(out->mutable_raw());
    ctx.ParallelFor(shape.num_elements() / cols, 0.1 * static_cast<double>(cols * bytes), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t row = line % rows, first = std::min(cols, std::max<int64_t>(0, row - below)),
                      last = std::min(cols, row + above + 1);
        char* target = to + line * cols * bytes;
        std::memset(target, 0, first * bytes);
        if (last > first) std::memcpy(target + first * bytes, from + (line * cols + first) * bytes, (last - first) * bytes);
        const int64_t rest = std::max(first, last);
        std::memset(target + rest * bytes, 0, (cols - rest) * bytes);
      }
    });
    return absl::OkStatus();
  }
};

absl::Status MatrixBandPartShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(2));
  return UnchangedShape(c);
}

// The types that TensorFlow has these kernels for.
KernelDef& NumbersAndBool(KernelDef& def) {
  return def.Type<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool,
                  std::complex<float>, std::complex<double>>("T");
}

constexpr char kAlign[] = "T: type; align: {\"LEFT_RIGHT\", \"RIGHT_LEFT\", \"LEFT_LEFT\", \"RIGHT_RIGHT\"} = \"RIGHT_LEFT\"";

void RegisterMatrixDiag(OpLibrary& lib) {
  const char* inputs = "(diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T) -> output: T";
  lib.schemas.Add("MatrixDiag(diagonal: T) -> output: T", "T: type").Shape(MatrixDiagShape).Cost(WrittenBytesCost);
  lib.schemas.Add(absl::StrCat("MatrixDiagV2", inputs), "T: type").Shape(MatrixDiagShape).Cost(WrittenBytesCost);
  lib.schemas.Add(absl::StrCat("MatrixDiagV3", inputs), kAlign).Shape(MatrixDiagShape).Cost(WrittenBytesCost);
  NumbersAndBool(lib.kernels.Add("MatrixDiag", "cpu", MakeKernel<MatrixDiagKernel>));
  for (const char* op : {"MatrixDiagV2", "MatrixDiagV3"}) {
    NumbersAndBool(lib.kernels.Add(op, "cpu", MakeKernel<MatrixDiagKernel>))
        .HostMemory("k")
        .HostMemory("num_rows")
        .HostMemory("num_cols")
        .HostMemory("padding_value");
  }
}

void RegisterMatrixDiagPart(OpLibrary& lib) {
  const char* inputs = "(input: T, k: int32, padding_value: T) -> diagonal: T";
  lib.schemas.Add("MatrixDiagPart(input: T) -> diagonal: T", "T: type").Shape(MatrixDiagPartShape).Cost(WrittenBytesCost);
  lib.schemas.Add(absl::StrCat("MatrixDiagPartV2", inputs), "T: type").Shape(MatrixDiagPartShape).Cost(WrittenBytesCost);
  lib.schemas.Add(absl::StrCat("MatrixDiagPartV3", inputs), kAlign).Shape(MatrixDiagPartShape).Cost(WrittenBytesCost);
  NumbersAndBool(lib.kernels.Add("MatrixDiagPart", "cpu", MakeKernel<MatrixDiagPartKernel>));
  for (const char* op : {"MatrixDiagPartV2", "MatrixDiagPartV3"}) {
    NumbersAndBool(lib.kernels.Add(op, "cpu", MakeKernel<MatrixDiagPartKernel>)).HostMemory("k").HostMemory("padding_value");
  }
}

void RegisterMatrixSetDiag(OpLibrary& lib) {
  const char* inputs = "(input: T, diagonal: T, k: int32) -> output: T";
  lib.schemas.Add("MatrixSetDiag(input: T, diagonal: T) -> output: T", "T: type").Shape(MatrixSetDiagShape).Cost(CopyCost);
  lib.schemas.Add(absl::StrCat("MatrixSetDiagV2", inputs), "T: type").Shape(MatrixSetDiagShape).Cost(CopyCost);
  lib.schemas.Add(absl::StrCat("MatrixSetDiagV3", inputs), kAlign).Shape(MatrixSetDiagShape).Cost(CopyCost);
  NumbersAndBool(lib.kernels.Add("MatrixSetDiag", "cpu", MakeKernel<MatrixSetDiagKernel>));
  for (const char* op : {"MatrixSetDiagV2", "MatrixSetDiagV3"}) {
    NumbersAndBool(lib.kernels.Add(op, "cpu", MakeKernel<MatrixSetDiagKernel>)).HostMemory("k");
  }
}

}  // namespace

void RegisterMatrixDiagOps(OpLibrary& lib) {
  RegisterMatrixDiag(lib);
  RegisterMatrixDiagPart(lib);
  RegisterMatrixSetDiag(lib);
  lib.schemas
      .Add("MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex) -> band: T", "T: type; Tindex: {int32, int64} = int64")
      .Shape(MatrixBandPartShape)
      .Cost(CopyCost);
  NumbersAndBool(lib.kernels.Add("MatrixBandPart", "cpu", MakeKernel<MatrixBandPartKernel>))
      .HostMemory("num_lower")
      .HostMemory("num_upper");
}

}  // namespace thalweg
