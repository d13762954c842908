// TopKV2: the largest k entries of each row.
//
// Every element becomes a 64-bit key that orders like its value, so one selection serves all types. Equal values keep
// their order (L18); NaN counts as larger than anything, as it does in Max.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/gather_blocks.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

constexpr uint64_t kSignBit = uint64_t{1} << 63;

template <typename T>
uint64_t OrderKey(T v) {
  if constexpr (std::is_unsigned_v<T>) return v;
  else return static_cast<uint64_t>(static_cast<int64_t>(v)) ^ kSignBit;
}
inline uint64_t OrderKey(double v) {
  if (v != v) return std::numeric_limits<uint64_t>::max();
  uint64_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  if ((bits & ~kSignBit) == 0) return kSignBit;  // -0 equals 0
  return bits & kSignBit ? ~bits : bits | kSignBit;
}
inline uint64_t OrderKey(float v) { return OrderKey(static_cast<double>(v)); }
inline uint64_t OrderKey(half v) { return OrderKey(static_cast<double>(static_cast<float>(v))); }
inline uint64_t OrderKey(bfloat16 v) { return OrderKey(static_cast<double>(static_cast<float>(v))); }

template <typename T>
void RowKeys(const void* row, int64_t columns, uint64_t* keys) {
  const T* values = static_cast<const T*>(row);
  for (int64_t i = 0; i < columns; ++i) keys[i] = OrderKey(values[i]);
}

using RowKeysFn = void (*)(const void* row, int64_t columns, uint64_t* keys);

RowKeysFn RowKeysOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return RowKeys<float>;
    case DType::kFloat64: return RowKeys<double>;
    case DType::kFloat16: return RowKeys<half>;
    case DType::kBFloat16: return RowKeys<bfloat16>;
    case DType::kInt8: return RowKeys<int8_t>;
    case DType::kInt16: return RowKeys<int16_t>;
    case DType::kInt32: return RowKeys<int32_t>;
    case DType::kInt64: return RowKeys<int64_t>;
    case DType::kUInt8: return RowKeys<uint8_t>;
    case DType::kUInt16: return RowKeys<uint16_t>;
    case DType::kUInt32: return RowKeys<uint32_t>;
    default: return RowKeys<uint64_t>;
  }
}

// Puts the positions of the k largest keys into `chosen`, largest first, using `order` as scratch.
void SelectLargest(const std::vector<uint64_t>& keys, int64_t k, std::vector<int64_t>* order, int64_t* chosen) {
  if (k == 1) {
    *chosen = std::max_element(keys.begin(), keys.end()) - keys.begin();
    return;
  }
  order->resize(keys.size());
  std::iota(order->begin(), order->end(), int64_t{0});
  const auto before = [&keys](int64_t a, int64_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; };
  if (k < static_cast<int64_t>(keys.size())) std::nth_element(order->begin(), order->begin() + k, order->end(), before);
  std::sort(order->begin(), order->begin() + k, before);
  std::copy_n(order->begin(), k, chosen);
}

int64_t LargestIndexOf(DType dtype) {
  if (dtype == DType::kInt16) return std::numeric_limits<int16_t>::max();
  return dtype == DType::kInt32 ? std::numeric_limits<int32_t>::max() : std::numeric_limits<int64_t>::max();
}

void StoreIndices(absl::Span<const int64_t> indices, Tensor* out) {
  switch (out->dtype()) {
    case DType::kInt16: std::copy(indices.begin(), indices.end(), out->mutable_flat<int16_t>().begin()); return;
    case DType::kInt32: std::copy(indices.begin(), indices.end(), out->mutable_flat<int32_t>().begin()); return;
    default: std::copy(indices.begin(), indices.end(), out->mutable_flat<int64_t>().begin()); return;
  }
}

absl::Status NegativeK(int64_t k) { return absl::InvalidArgumentError(absl::StrCat("k is ", k, "; it must be >= 0")); }
absl::Status TooFewColumns(int64_t columns, int64_t k) {
  return absl::InvalidArgumentError(absl::StrCat("input has ", columns, " columns, but k asks for ", k));
}

class TopKKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const int64_t k, IntScalarArg(ctx.input(1), "k"));
    if (k < 0) return NegativeK(k);
    if (in.rank() < 1) return absl::InvalidArgumentError("input must have at least rank 1, but it is a scalar");
    const int64_t columns = in.dim(in.rank() - 1);
    if (columns < k) return TooFewColumns(columns, k);
    if (columns - 1 > LargestIndexOf(ctx.output_dtype(1))) {
      return absl::InvalidArgumentError(
          absl::StrCat(columns, " columns are too many for indices of ", DTypeName(ctx.output_dtype(1))));
    }
    Dims dims(in.shape().dims().begin(), in.shape().dims().end());
    dims.back() = k;
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(0, shape));
    THALWEG_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(1, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(Tensor chosen, ctx.AllocateTemp(DType::kInt64, shape));
    SelectRows(ctx, in, k, chosen.mutable_flat<int64_t>().data());
    BlockGather gather;
    gather.batch = in.num_elements() / columns;
    gather.count = k;
    gather.group = columns;
    gather.offsets = chosen.flat<int64_t>().data();
    GatherBlocks(ctx, in.dtype(), gather, in.raw(), values->mutable_raw());
    StoreIndices(chosen.flat<int64_t>(), indices);
    return absl::OkStatus();
  }

 private:
  static void SelectRows(KernelContext& ctx, const Tensor& in, int64_t k, int64_t* chosen) {
    const int64_t columns = in.dim(in.rank() - 1);
    const int64_t row_bytes = columns * static_cast<int64_t>(DTypeSize(in.dtype()));
    const RowKeysFn row_keys = RowKeysOf(in.dtype());
    const double nanos_per_row = (k == 1 ? 2.0 : 12.0) * columns;
    ctx.ParallelFor(in.num_elements() / columns, nanos_per_row, [&](int64_t begin, int64_t end) {
      std::vector<uint64_t> keys(columns);
      std::vector<int64_t> order;
      for (int64_t row = begin; row < end; ++row) {
        row_keys(static_cast<const char*>(in.raw()) + row * row_bytes, columns, keys.data());
        SelectLargest(keys, k, &order, chosen + row * k);
      }
    });
  }
};

absl::Status TopKShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  const PartialShape& in = c.input(0);
  THALWEG_ASSIGN_OR_RETURN(const std::optional<int64_t> k, ConstantScalar(c, 1));
  if (k && *k < 0) return NegativeK(*k);
  if (!in.has_rank()) return absl::OkStatus();
  const int64_t columns = in.dim(in.rank() - 1);
  if (k && IsKnownDim(columns) && columns < *k) return TooFewColumns(columns, *k);
  PartialShape out = in;
  const std::optional<Dims> known = KnownDims(c, 1);
  out.set_dim(in.rank() - 1, known && known->size() == 1 ? (*known)[0] : kUnknownDim);
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void RegisterTopK(OpLibrary& lib) {
  lib.schemas
      .Add("TopKV2(input: T, k: Tk) -> (values: T, indices: index_type)",
           "sorted: bool = true; T: realnumbertype; Tk: {int16, int32, int64} = int32; index_type: {int16, int32, "
           "int64} = int32")
      .Shape(TopKShape)
      .Cost(ElementwiseCost<10>);
  lib.kernels.Add("TopKV2", "cpu", MakeKernel<TopKKernel>).HostMemory("k");
}

}  // namespace thalweg
