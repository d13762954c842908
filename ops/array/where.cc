// Where: the coordinates of the elements that are true, in row-major order.
#include <algorithm>
#include <complex>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"

namespace thalweg {
namespace {

constexpr int kMaxWhereRank = 8;
constexpr int64_t kBlock = 1 << 15;  // elements that one task counts, then writes

template <typename T>
bool IsTrue(T v) {
  return v != T(0);
}
inline bool IsTrue(bool v) { return v; }
inline bool IsTrue(half v) { return (v.bits & 0x7fff) != 0; }
inline bool IsTrue(bfloat16 v) { return static_cast<float>(v) != 0.0f; }

// Writes the coordinates of the true elements among [begin, end) from `out` on, `rank` numbers each.
template <typename T>
void WriteCoordinates(const Shape& shape, const T* values, int64_t begin, int64_t end, int64_t* out) {
  const int rank = shape.rank();
  const int64_t row = shape.dim(rank - 1);
  Dims at(rank);
  int64_t rest = begin;
  for (int d = rank - 1; d >= 0; --d) {
    at[d] = rest % shape.dim(d);
    rest /= shape.dim(d);
  }
  for (int64_t i = begin; i < end; ++i) {
    if (IsTrue(values[i])) out = std::copy(at.begin(), at.end(), out);
    if (++at[rank - 1] < row) continue;
    for (int d = rank - 1; d > 0 && at[d] == shape.dim(d); --d) {
      at[d] = 0;
      ++at[d - 1];
    }
  }
}

// Two passes over blocks: count, then write where the counts say. `T` stands for all types with its truth.
template <typename T>
absl::Status FindTrue(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const T* values = static_cast<const T*>(in.raw());
  const int64_t elements = in.num_elements();
  const int64_t blocks = (elements + kBlock - 1) / kBlock;
  std::vector<int64_t> start(blocks + 1,
                             0);  // first the count of block b at b + 1, then the true elements before block b
  ctx.ParallelFor(blocks, 0.5 * kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t count = 0;
      for (int64_t i = b * kBlock; i < std::min(elements, (b + 1) * kBlock); ++i) count += IsTrue(values[i]);
      start[b + 1] = count;
    }
  });
  for (int64_t b = 0; b < blocks; ++b) start[b + 1] += start[b];

  const int rank = in.rank();
  THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({start[blocks], rank}));
  THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  int64_t* coordinates = out->mutable_flat<int64_t>().data();
  ctx.ParallelFor(blocks, 2.0 * kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      WriteCoordinates(in.shape(), values, b * kBlock, std::min(elements, (b + 1) * kBlock),
                       coordinates + start[b] * rank);
    }
  });
  return absl::OkStatus();
}

class WhereKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    if (shape.rank() < 1 || shape.rank() > kMaxWhereRank) {
      return absl::InvalidArgumentError(
          absl::StrCat("input must have rank 1 to ", kMaxWhereRank, ", but its shape is ", shape.ToString()));
    }
    switch (ctx.input_dtype(0)) {
      case DType::kBool: return FindTrue<bool>(ctx);
      case DType::kInt8:
      case DType::kUInt8: return FindTrue<uint8_t>(ctx);
      case DType::kInt16:
      case DType::kUInt16: return FindTrue<uint16_t>(ctx);
      case DType::kInt32:
      case DType::kUInt32: return FindTrue<uint32_t>(ctx);
      case DType::kInt64:
      case DType::kUInt64: return FindTrue<uint64_t>(ctx);
      case DType::kFloat16: return FindTrue<half>(ctx);
      case DType::kBFloat16: return FindTrue<bfloat16>(ctx);
      case DType::kFloat32: return FindTrue<float>(ctx);
      case DType::kFloat64: return FindTrue<double>(ctx);
      case DType::kComplex64: return FindTrue<std::complex<float>>(ctx);
      case DType::kComplex128: return FindTrue<std::complex<double>>(ctx);
      default: return absl::UnimplementedError(absl::StrCat("Where of ", DTypeName(ctx.input_dtype(0))));
    }
  }
};

absl::Status WhereShape(ShapeContext& c) {
  return SetOutputDims(c, {kUnknownDim, c.input(0).has_rank() ? c.input(0).rank() : kUnknownDim});
}

}  // namespace

void RegisterWhere(OpLibrary& lib) {
  lib.schemas
      .Add("Where(input: T) -> index: int64",
           "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, "
           "quint16, "
           "uint16, complex128, half, uint32, uint64, bool} = bool")
      .Shape(WhereShape)
      .Cost(CopyCost);
  lib.kernels.Add("Where", "cpu", MakeKernel<WhereKernel>)
      .Type<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
            bool, std::complex<float>, std::complex<double>>("T");
}

}  // namespace thalweg
