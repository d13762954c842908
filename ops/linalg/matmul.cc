// MatMul, _FusedMatMul, BatchMatMul, BatchMatMulV2, BatchMatMulV3.
#include <algorithm>
#include <complex>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/computing_tensor.h"
#include "thalweg/ops/common/epilogue.h"
#include "thalweg/ops/common/first_error.h"
#include "thalweg/ops/common/gemm.h"
#include "thalweg/ops/linalg/batch_gemm.h"
#include "thalweg/ops/linalg/linalg_ops.h"
#include "thalweg/ops/linalg/packed_matrix.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

struct Transposes {
  bool a = false, b = false;
};

// Sizes of one product: op(A) is m x k, op(B) k x n.
struct MatrixSizes {
  int64_t m = 0, n = 0, k = 0;
};

// From the last two dimensions of both operands, which have at least rank 2.
absl::StatusOr<MatrixSizes> FitMatrices(const Shape& a, const Shape& b, Transposes transposes) {
  const int64_t a_rows = a.dim(a.rank() - 2), a_cols = a.dim(a.rank() - 1), b_rows = b.dim(b.rank() - 2),
                b_cols = b.dim(b.rank() - 1);
  const MatrixSizes sizes{transposes.a ? a_cols : a_rows, transposes.b ? b_rows : b_cols,
                          transposes.a ? a_rows : a_cols};
  const int64_t b_inner = transposes.b ? b_cols : b_rows;
  if (sizes.k == b_inner) return sizes;
  return absl::InvalidArgumentError(absl::StrCat(
      "matrices of shapes ", a.ToString(), transposes.a ? " (transposed)" : "", " and ", b.ToString(),
      transposes.b ? " (transposed)" : "", " cannot be multiplied: the inner sizes are ", sizes.k, " and ", b_inner));
}

template <typename T>
GemmArgs<T> MakeGemm(const MatrixSizes& sizes, Transposes transposes, const T* a, const T* b, T* c) {
  GemmArgs<T> gemm;
  gemm.m = sizes.m;
  gemm.n = sizes.n;
  gemm.k = sizes.k;
  gemm.a = a;
  gemm.lda = transposes.a ? sizes.m : sizes.k;
  gemm.transpose_a = transposes.a;
  gemm.b = b;
  gemm.ldb = transposes.b ? sizes.k : sizes.n;
  gemm.transpose_b = transposes.b;
  gemm.c = c;
  gemm.ldc = sizes.n;
  return gemm;
}

// Leaves nothing to be compiled in the first step, unless there will be only single rows, which need no compiled code.
// `open_rows` stands for a number of rows that is not known: of a matrix it is mostly the batch, which is mostly 1.
//
// Returns whether there will be single rows.
//
// Constant right operands of several rows are not packed: oneDNN's products with packed weights were measured to be no faster
// than its plain ones (1 to 256 rows, 512 to 2,048 columns), and packing holds the weights twice.
template <typename T>
bool Prepare(const KernelInit& init, Transposes transposes, int64_t open_rows) {
  const PartialShape left = init.input_shape(0);
  const int64_t stated = left.has_rank() && left.rank() >= 2 ? left.dim(left.rank() - (transposes.a ? 1 : 2)) : kUnknownDim;
  const int64_t rows = IsKnownDim(stated) ? stated : open_rows;
  if (rows != 1 || transposes.b) PrepareGemm(DTypeOf<T>::value);
  return rows == 1;
}

// A copy of the constant input `operand` that begins with a cache line, if its tensor does not, as those that lie in a file do not:
// products of 100 rows read such matrices a fifth faster. Without a value if there is nothing to copy, or no memory for it.
Tensor AlignedConstant(const KernelInit& init, size_t operand) {
  constexpr uintptr_t kCacheLine = 64;
  const TensorLiteralPtr literal = init.constant_input(operand);
  Device& device = *init.node().device;
  if (literal == nullptr || literal->dtype != DType::kFloat32 || device.memory() != MemoryKind::kHost) return Tensor();
  const absl::StatusOr<Tensor> plain = Tensor::FromLiteral(literal, device.allocator());
  if (!plain.ok() || reinterpret_cast<uintptr_t>(plain->raw()) % kCacheLine == 0) return Tensor();
  absl::StatusOr<Tensor> aligned = Tensor::Allocate(literal->dtype, literal->shape, device.allocator(), init.node().id);
  if (!aligned.ok()) return Tensor();
  literal->CopyTo(aligned->mutable_raw());
  return *std::move(aligned);
}

// T is the computing type.
template <typename T, bool kFused>
class MatMulKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    auto kernel = std::make_unique<MatMulKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->transposes_.a, init.Attr<bool>("transpose_a"));
    THALWEG_ASSIGN_OR_RETURN(kernel->transposes_.b, init.Attr<bool>("transpose_b"));
    if constexpr (kFused) {
      THALWEG_ASSIGN_OR_RETURN(kernel->fused_, ParseFusedOps(init.node().node_attrs()));
    }
    const bool single_rows = Prepare<T>(init, kernel->transposes_, /*open_rows=*/1);
    if constexpr (std::is_same_v<T, float>) {
      if (single_rows && !kernel->transposes_.b) kernel->packed_ = PackedMatrix::Make(init, 1);
      if (kernel->packed_ == nullptr) kernel->constant_ = AlignedConstant(init, 1);
    }
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& a = ctx.input(0);
    const Tensor& b = constant_.initialized() ? constant_ : ctx.input(1);
    if (a.rank() != 2 || b.rank() != 2) {
      return absl::InvalidArgumentError(absl::StrCat("both operands must be matrices but have the shapes ",
                                                     a.shape().ToString(), " and ", b.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const MatrixSizes sizes, FitMatrices(a.shape(), b.shape(), transposes_));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({sizes.m, sizes.n}));
    EpilogueArgs<T> args;
    if constexpr (kFused) THALWEG_RETURN_IF_ERROR(ReadEpilogue(ctx, shape, &args));
    THALWEG_ASSIGN_OR_RETURN(const Tensor left, ToComputing(ctx, a));
    THALWEG_ASSIGN_OR_RETURN(const Tensor right, ToComputing(ctx, b));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, shape));
    const GemmArgs<T> gemm = MakeGemm<T>(sizes, transposes_, static_cast<const T*>(left.raw()),
                                         static_cast<const T*>(right.raw()), static_cast<T*>(output.data()));
    THALWEG_RETURN_IF_ERROR(Multiply(ctx, gemm, args.epilogue()));
    output.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadEpilogue(KernelContext& ctx, const Shape& shape, EpilogueArgs<T>* args) const {
    THALWEG_RETURN_IF_ERROR(args->Read(ctx, fused_, 2, shape.dim(1)));
    if (!fused_.add) return absl::OkStatus();
    const Tensor& added = ctx.input(2 + fused_.num_args() - 1);
    if (added.shape() != shape) {
      return absl::InvalidArgumentError(absl::StrCat("what is added must have the shape of the product, ",
                                                     shape.ToString(), ", but has ", added.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor computing, ToComputing(ctx, added));
    args->set_add(std::move(computing));
    return absl::OkStatus();
  }

  absl::Status Multiply(KernelContext& ctx, const GemmArgs<T>& gemm, const Epilogue<T>& epilogue) {
    THALWEG_RETURN_IF_ERROR(MultiplyOnly(ctx, gemm));
    if constexpr (kFused) {
      if (!epilogue.empty()) {
        ctx.ParallelFor(gemm.m, 0.3 * static_cast<double>(gemm.n),
                        [&](int64_t begin, int64_t end) { ApplyEpilogue(epilogue, begin, end, gemm.n, gemm.c); });
      }
    }
    return absl::OkStatus();
  }

  absl::Status MultiplyOnly(KernelContext& ctx, const GemmArgs<T>& gemm) {
    if constexpr (std::is_same_v<T, float>) {
      if (packed_ != nullptr && gemm.m == 1) {
        packed_->Multiply(ctx, gemm.a, gemm.c);
        return absl::OkStatus();
      }
    }
    const GemmTiles tiles = TileGemm(gemm.m, gemm.n, gemm.k, ctx.step().num_threads());
    FirstError error;
    ctx.ParallelFor(tiles.count(), GemmNanos(DTypeOf<T>::value, tiles.rows, tiles.cols, gemm.k),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) error.Update(GemmTile(gemm, tiles, i));
                    });
    return error.status();
  }

  Transposes transposes_;
  FusedOps fused_;
  std::unique_ptr<PackedMatrix> packed_;  // the right operand, if it is constant and packing it pays; for single rows
  Tensor constant_;                       // the right operand, if it is constant and its own tensor begins somewhere
};

// Which matrix of an operand belongs to each matrix of the output; the operand's batch dimensions may be broadcast.
class BatchIndex {
 public:
  BatchIndex(const Shape& operand, const Shape& output) {
    const int batch_rank = output.rank() - 2, missing = output.rank() - operand.rank();
    same_ = operand.NumElements(0, operand.rank() - 2) == output.NumElements(0, batch_rank);
    int64_t stride = 1;
    for (int i = batch_rank - 1; i >= 0; --i) {
      const int64_t size = i >= missing ? operand.dim(i - missing) : 1;
      dims_.insert(dims_.begin(), output.dim(i));
      strides_.insert(strides_.begin(), size == 1 ? 0 : stride);
      stride *= size;
    }
  }

  int64_t operator()(int64_t output_index) const {
    if (same_) return output_index;
    int64_t index = 0;
    for (int i = static_cast<int>(dims_.size()) - 1; i >= 0; --i) {
      index += output_index % dims_[i] * strides_[i];
      output_index /= dims_[i];
    }
    return index;
  }

 private:
  bool same_ = false;
  Dims dims_, strides_;
};

// The batch dimensions of the output, without the matrices.
absl::StatusOr<Dims> BatchDims(const Shape& x, const Shape& y, bool broadcast) {
  THALWEG_ASSIGN_OR_RETURN(const Shape x_batch, Shape::Make(x.dims().subspan(0, x.rank() - 2)));
  THALWEG_ASSIGN_OR_RETURN(const Shape y_batch, Shape::Make(y.dims().subspan(0, y.rank() - 2)));
  if (!broadcast && x_batch != y_batch) {
    return absl::InvalidArgumentError(absl::StrCat("all dimensions but the last two must be equal; the shapes are ",
                                                   x.ToString(), " and ", y.ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(const Shape batch, BroadcastShapes(x_batch, y_batch));
  return Dims(batch.dims().begin(), batch.dims().end());
}

// T is the computing type. Products of a batch, or (if there are few) tiles of each product, are spread over threads.
template <typename T, bool kBroadcast>
class BatchMatMulKernel final : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    auto kernel = std::make_unique<BatchMatMulKernel>();
    THALWEG_ASSIGN_OR_RETURN(kernel->adjoints_.a, init.Attr<bool>("adj_x"));
    THALWEG_ASSIGN_OR_RETURN(kernel->adjoints_.b, init.Attr<bool>("adj_y"));
    Prepare<T>(init, kernel->adjoints_, kUnknownDim);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    const Shape& y = ctx.input(1).shape();
    if (x.rank() < 2 || y.rank() < 2) {
      return absl::InvalidArgumentError(absl::StrCat("both operands must have at least rank 2 but have the shapes ",
                                                     x.ToString(), " and ", y.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const MatrixSizes sizes, FitMatrices(x, y, adjoints_));
    THALWEG_ASSIGN_OR_RETURN(Dims dims, BatchDims(x, y, kBroadcast));
    dims.push_back(sizes.m);
    dims.push_back(sizes.n);
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(const Tensor left, ToComputing(ctx, ctx.input(0)));
    THALWEG_ASSIGN_OR_RETURN(const Tensor right, ToComputing(ctx, ctx.input(1)));
    THALWEG_ASSIGN_OR_RETURN(ComputedOutput output, ComputedOutput::Allocate(ctx, 0, shape));
    if (shape.num_elements() > 0) {
      THALWEG_RETURN_IF_ERROR(MultiplyAll(ctx, sizes, shape, left, right, static_cast<T*>(output.data())));
    }
    output.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  absl::Status MultiplyAll(KernelContext& ctx, const MatrixSizes& sizes, const Shape& shape, const Tensor& x,
                           const Tensor& y, T* out) const {
    const BatchIndex x_index(x.shape(), shape), y_index(y.shape(), shape);
    const int64_t batch = shape.NumElements(0, shape.rank() - 2);
    GemmArgs<T> gemm =
        MakeGemm<T>(sizes, adjoints_, static_cast<const T*>(x.raw()), static_cast<const T*>(y.raw()), out);
    gemm.conjugate_a = adjoints_.a;
    gemm.conjugate_b = adjoints_.b;
    return BatchGemm(ctx, gemm, batch, x_index, y_index);
  }

  Transposes adjoints_;
};

// The last two dimensions of the product; kUnknownDim where not known.
absl::StatusOr<std::pair<int64_t, int64_t>> ProductDims(const PartialShape& a, const PartialShape& b,
                                                        Transposes transposes) {
  const auto dim = [](const PartialShape& s, bool last) {
    return s.has_rank() ? s.dim(s.rank() - (last ? 1 : 2)) : kUnknownDim;
  };
  const int64_t inner_a = dim(a, !transposes.a), inner_b = dim(b, transposes.b);
  if (IsKnownDim(inner_a) && IsKnownDim(inner_b) && inner_a != inner_b) {
    return absl::InvalidArgumentError(absl::StrCat(
        "matrices of shapes ", a.ToString(), transposes.a ? " (transposed)" : "", " and ", b.ToString(),
        transposes.b ? " (transposed)" : "", " cannot be multiplied: the inner sizes are ", inner_a, " and ", inner_b));
  }
  return std::make_pair(dim(a, transposes.a), dim(b, !transposes.b));
}

absl::Status MatMulShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 2));
  const Transposes transposes{c.attrs().GetOr<bool>("transpose_a", false), c.attrs().GetOr<bool>("transpose_b", false)};
  THALWEG_ASSIGN_OR_RETURN(const auto product, ProductDims(c.input(0), c.input(1), transposes));
  c.set_output(0, PartialShape::OfDims({product.first, product.second}));
  return absl::OkStatus();
}

PartialShape BatchOf(const PartialShape& s) {
  if (!s.has_rank()) return PartialShape();
  return PartialShape::OfDims(Dims(s.dims().begin(), s.dims().end() - 2));
}

template <bool kBroadcast>
absl::Status BatchMatMulShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 2));
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(1, 2));
  const Transposes adjoints{c.attrs().GetOr<bool>("adj_x", false), c.attrs().GetOr<bool>("adj_y", false)};
  THALWEG_ASSIGN_OR_RETURN(const auto product, ProductDims(c.input(0), c.input(1), adjoints));
  const PartialShape x = BatchOf(c.input(0)), y = BatchOf(c.input(1));
  THALWEG_ASSIGN_OR_RETURN(const PartialShape batch,
                           kBroadcast ? ShapeContext::Broadcast(x, y) : ShapeContext::Merge(x, y));
  if (!batch.has_rank()) return absl::OkStatus();
  Dims dims(batch.dims().begin(), batch.dims().end());
  dims.push_back(product.first);
  dims.push_back(product.second);
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

// Two operations per multiply-add.
NodeCost MatMulCost(const CostContext& c) {
  NodeCost cost = CopyCost(c);
  const PartialShape& a = c.input(0);
  const char* flag = c.attrs().Has("transpose_a") ? "transpose_a" : "adj_x";
  const bool transposed = c.attrs().GetOr<bool>(flag, false);
  const int64_t inner = a.has_rank() && a.rank() >= 2 ? a.dim(a.rank() - (transposed ? 2 : 1)) : kUnknownDim;
  cost.flops = 2 * c.OutputElements(0) * (IsKnownDim(inner) ? static_cast<double>(inner) : 1);
  return cost;
}

template <typename T, typename... Storage>
void AddMatMul(OpLibrary& lib) {
  lib.kernels.Add("MatMul", "cpu", MakeFallibleKernel<MatMulKernel<T, false>>).template Type<Storage...>("T");
}

template <bool kBroadcast, typename T, typename... Storage>
void AddBatchMatMul(OpLibrary& lib) {
  lib.kernels
      .Add(kBroadcast ? "BatchMatMulV2" : "BatchMatMul", "cpu", MakeFallibleKernel<BatchMatMulKernel<T, kBroadcast>>)
      .template Type<Storage...>("T");
}

template <bool kBroadcast>
void AddBatchMatMuls(OpLibrary& lib) {
  AddBatchMatMul<kBroadcast, float, float, half, bfloat16>(lib);
  AddBatchMatMul<kBroadcast, double, double>(lib);
  AddBatchMatMul<kBroadcast, int32_t, int32_t>(lib);
  AddBatchMatMul<kBroadcast, int64_t, int64_t>(lib);
  AddBatchMatMul<kBroadcast, std::complex<float>, std::complex<float>>(lib);
  AddBatchMatMul<kBroadcast, std::complex<double>, std::complex<double>>(lib);
}

// One type throughout; V3 states it three times.
template <typename T, typename Storage>
void AddBatchMatMulV3(OpLibrary& lib) {
  lib.kernels.Add("BatchMatMulV3", "cpu", MakeFallibleKernel<BatchMatMulKernel<T, true>>)
      .template Type<Storage>("Ta")
      .template Type<Storage>("Tb")
      .template Type<Storage>("Tout");
}

void RegisterBatchMatMulV3(OpLibrary& lib) {
  lib.schemas
      .Add("BatchMatMulV3(x: Ta, y: Tb) -> output: Tout",
           "Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}; "
           "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}; "
           "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}; "
           "adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false")
      .Shape(BatchMatMulShape<true>)
      .Cost(MatMulCost);
  AddBatchMatMulV3<float, float>(lib);
  AddBatchMatMulV3<float, bfloat16>(lib);
  AddBatchMatMulV3<double, double>(lib);
  AddBatchMatMulV3<int16_t, int16_t>(lib);
  AddBatchMatMulV3<int32_t, int32_t>(lib);
  AddBatchMatMulV3<int64_t, int64_t>(lib);
  AddBatchMatMulV3<std::complex<float>, std::complex<float>>(lib);
  AddBatchMatMulV3<std::complex<double>, std::complex<double>>(lib);
}

}  // namespace

void RegisterMatMulOps(OpLibrary& lib) {
  lib.schemas
      .Add("MatMul(a: T, b: T) -> product: T",
           "transpose_a: bool = false; transpose_b: bool = false; "
           "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; "
           "grad_a: bool = false; grad_b: bool = false")
      .Shape(MatMulShape)
      .Cost(MatMulCost);
  AddMatMul<float, float, half, bfloat16>(lib);
  AddMatMul<double, double>(lib);
  AddMatMul<int32_t, int32_t>(lib);
  AddMatMul<int64_t, int64_t>(lib);
  AddMatMul<std::complex<float>, std::complex<float>>(lib);
  AddMatMul<std::complex<double>, std::complex<double>>(lib);

  lib.schemas
      .Add("_FusedMatMul(a: T, b: T, args: num_args*T) -> product: T",
           "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, float}; num_args: int >= 0; "
           "fused_ops: list(string) = []; epsilon: float = 0.0001; leakyrelu_alpha: float = 0.2")
      .Shape(MatMulShape)
      .Cost(MatMulCost);
  lib.kernels.Add("_FusedMatMul", "cpu", MakeFallibleKernel<MatMulKernel<float, true>>)
      .Type<float, half, bfloat16>("T");

  lib.schemas
      .Add("BatchMatMul(x: T, y: T) -> output: T",
           "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}; adj_x: bool = false; "
           "adj_y: bool = false; grad_x: bool = false; grad_y: bool = false")
      .Shape(BatchMatMulShape<false>)
      .Cost(MatMulCost);
  AddBatchMatMuls<false>(lib);

  lib.schemas
      .Add("BatchMatMulV2(x: T, y: T) -> output: T",
           "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; "
           "adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false")
      .Shape(BatchMatMulShape<true>)
      .Cost(MatMulCost);
  AddBatchMatMuls<true>(lib);
  AddBatchMatMul<true, int16_t, int16_t>(lib);
  RegisterBatchMatMulV3(lib);
}

}  // namespace thalweg
