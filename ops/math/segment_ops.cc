// Segment reductions: rows of a tensor that have one id are reduced to one row. SegmentSum, -Mean, -Prod, -Max, -Min want
// sorted ids, UnsortedSegmentSum, -Prod, -Max, -Min any; what no id names is stated by L23.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// The ends of a type's finite numbers.
template <typename T>
struct FiniteRange {
  static T Lowest() { return std::numeric_limits<T>::lowest(); }
  static T Highest() { return std::numeric_limits<T>::max(); }
};
template <>
struct FiniteRange<half> {
  static half Lowest() { return half::FromBits(0xfbff); }
  static half Highest() { return half::FromBits(0x7bff); }
};
template <>
struct FiniteRange<bfloat16> {
  static bfloat16 Lowest() { return bfloat16::FromBits(0xff7f); }
  static bfloat16 Highest() { return bfloat16::FromBits(0x7f7f); }
};

// Start<T>() is what an id of unsorted segments starts with, kGap what a gap among sorted ones holds.
struct SumSegments {
  static constexpr int kGap = 0;
  template <typename T> static T Start() { return static_cast<T>(ComputingT<T>(0)); }
  template <typename T> static T Join(T a, T b) { return WrappingAdd(a, b); }
};
struct ProdSegments {
  static constexpr int kGap = 1;
  template <typename T> static T Start() { return static_cast<T>(ComputingT<T>(1)); }
  template <typename T> static T Join(T a, T b) { return WrappingMul(a, b); }
};
struct MaxSegments {
  static constexpr int kGap = 0;
  template <typename T> static T Start() { return FiniteRange<T>::Lowest(); }
  template <typename T> static T Join(T a, T b) { return a < b ? b : a; }
};
struct MinSegments {
  static constexpr int kGap = 0;
  template <typename T> static T Start() { return FiniteRange<T>::Highest(); }
  template <typename T> static T Join(T a, T b) { return b < a ? b : a; }
};

// What an op does to rows of one element type. The kernels know no type, so that each is compiled once.
struct RowMath {
  int64_t element_bytes;
  void (*fill)(int64_t n, void* out);                       // with what nothing was joined to
  void (*join)(const void* in, int64_t n, void* row);       // row[k] = Op(row[k], in[k]), rounded each time
  void (*divide)(int64_t count, int64_t n, void* row);      // null: the op is no mean
};

template <typename Op, typename T>
void JoinRow(const void* in, int64_t n, void* row) {
  const T* from = static_cast<const T*>(in);
  T* to = static_cast<T*>(row);
  for (int64_t k = 0; k < n; ++k) {
    to[k] = static_cast<T>(Op::Join(static_cast<ComputingT<T>>(to[k]), static_cast<ComputingT<T>>(from[k])));
  }
}

template <typename Op, typename T>
void FillWithGap(int64_t n, void* out) {
  std::fill_n(static_cast<T*>(out), n, static_cast<T>(static_cast<ComputingT<T>>(Op::kGap)));
}
template <typename Op, typename T>
void FillWithStart(int64_t n, void* out) { std::fill_n(static_cast<T*>(out), n, Op::template Start<T>()); }

// Towards zero; a count that the type cannot hold exceeds any sum.
template <typename T>
T DivideInteger(T sum, int64_t count) {
  if constexpr (std::is_signed_v<T>) return static_cast<T>(static_cast<int64_t>(sum) / count);
  else return static_cast<T>(static_cast<uint64_t>(sum) / static_cast<uint64_t>(count));
}
template <typename T>
void DivideRow(int64_t count, int64_t n, void* row) {
  using C = ComputingT<T>;
  T* values = static_cast<T*>(row);
  for (int64_t k = 0; k < n; ++k) {
    if constexpr (std::is_integral_v<T>) values[k] = DivideInteger(values[k], count);
    else values[k] = static_cast<T>(static_cast<C>(values[k]) / static_cast<C>(static_cast<float>(count)));
  }
}

template <typename Op, bool kMean, typename T>
constexpr RowMath kSortedMath = {sizeof(T), &FillWithGap<Op, T>, &JoinRow<Op, T>, kMean ? &DivideRow<T> : nullptr};
template <typename Op, typename T>
constexpr RowMath kUnsortedMath = {sizeof(T), &FillWithStart<Op, T>, &JoinRow<Op, T>, nullptr};

// Rows of a tensor, wherever they begin.
template <typename Byte>
Byte* RowAt(Byte* base, int64_t row, int64_t row_bytes) { return base + row * row_bytes; }

// ---- sorted ids

absl::Status CheckIds(const Tensor& data, const Tensor& ids) {
  if (ids.rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("segment_ids must be a vector, but its shape is ", ids.shape().ToString()));
  }
  if (data.rank() > 0 && data.dim(0) == ids.dim(0)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("segment_ids must have an element for each row of data, but the shapes are ",
                                                 ids.shape().ToString(), " and ", data.shape().ToString()));
}

class SegmentKernel final : public Kernel {
 public:
  explicit SegmentKernel(const RowMath& math) : math_(math) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    THALWEG_RETURN_IF_ERROR(CheckIds(data, ids));
    return WithIndices(ids, [&](auto values) { return Reduce(ctx, data, values); });
  }

 private:
  template <typename Index>
  static absl::Status CheckSorted(absl::Span<const Index> ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= (i == 0 ? Index(0) : ids[i - 1])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("segment ids must not be negative or fall, but segment_ids[", i, "] is ", ids[i],
                       i == 0 ? "" : absl::StrCat(" after ", ids[i - 1])));
    }
    return absl::OkStatus();
  }

  template <typename Index>
  absl::Status Reduce(KernelContext& ctx, const Tensor& data, absl::Span<const Index> ids) const {
    THALWEG_RETURN_IF_ERROR(CheckSorted(ids));
    Dims dims(data.shape().dims().begin(), data.shape().dims().end());
    int64_t segments = 0;
    if (!ids.empty() && !CheckedAdd(static_cast<int64_t>(ids.back()), 1, &segments)) {
      return absl::InvalidArgumentError(absl::StrCat("the segment id ", ids.back(), " is too large"));
    }
    dims[0] = segments;
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
    const int64_t row = data.shape().NumElements(1, data.rank()), row_bytes = row * math_.element_bytes;
    char* out = static_cast<char*>(tensor->mutable_raw());
    const char* in = static_cast<const char*>(data.raw());
    math_.fill(shape.num_elements(), out);
    if (row == 0) return absl::OkStatus();
    size_t begin = 0;
    while (begin < ids.size()) {
      size_t end = begin + 1;
      while (end < ids.size() && ids[end] == ids[begin]) ++end;
      char* target = RowAt(out, static_cast<int64_t>(ids[begin]), row_bytes);
      std::memcpy(target, RowAt(in, static_cast<int64_t>(begin), row_bytes), row_bytes);
      for (size_t i = begin + 1; i < end; ++i) math_.join(RowAt(in, static_cast<int64_t>(i), row_bytes), row, target);
      if (math_.divide != nullptr) math_.divide(static_cast<int64_t>(end - begin), row, target);
      begin = end;
    }
    return absl::OkStatus();
  }

  const RowMath& math_;
};

absl::Status SegmentShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireRank(1, 1));
  PartialShape shape = c.input(0);
  if (!shape.has_rank()) return absl::OkStatus();
  if (c.input(1).has_rank()) THALWEG_RETURN_IF_ERROR(ShapeContext::MergeDim(shape.dim(0), c.input(1).dim(0)).status());
  shape.set_dim(0, kUnknownDim);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- unsorted ids

class UnsortedSegmentKernel final : public Kernel {
 public:
  explicit UnsortedSegmentKernel(const RowMath& math) : math_(math) {}
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& data = ctx.input(0);
    const Tensor& ids = ctx.input(1);
    THALWEG_ASSIGN_OR_RETURN(const int64_t segments, IntScalarArg(ctx.input(2), "num_segments"));
    if (segments < 0) return absl::InvalidArgumentError(absl::StrCat("num_segments is ", segments, "; it must not be negative"));
    if (ids.rank() > data.rank() || !std::equal(ids.shape().dims().begin(), ids.shape().dims().end(), data.shape().dims().begin())) {
      return absl::InvalidArgumentError(absl::StrCat("the shape of segment_ids, ", ids.shape().ToString(),
                                                     ", must be a prefix of the shape of data, ", data.shape().ToString()));
    }
    Dims dims = {segments};
    dims.insert(dims.end(), data.shape().dims().begin() + ids.rank(), data.shape().dims().end());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.AllocateOutput(0, shape));
    const int64_t row = data.shape().NumElements(ids.rank(), data.rank()), row_bytes = row * math_.element_bytes;
    char* out = static_cast<char*>(tensor->mutable_raw());
    const char* in = static_cast<const char*>(data.raw());
    math_.fill(shape.num_elements(), out);
    if (data.num_elements() == 0) return absl::OkStatus();  // whatever the ids say
    return WithIndices(ids, [&](auto values) {
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t id = static_cast<int64_t>(values[i]);
        if (id < 0) continue;
        if (id >= segments) {
          return absl::InvalidArgumentError(absl::StrCat("segment_ids", CoordinateString(ids.shape(), static_cast<int64_t>(i)),
                                                         " is ", id, "; it must be below num_segments, ", segments));
        }
        math_.join(RowAt(in, static_cast<int64_t>(i), row_bytes), row, RowAt(out, id, row_bytes));
      }
      return absl::OkStatus();
    });
  }

 private:
  const RowMath& math_;
};

absl::Status UnsortedSegmentShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(2));
  const PartialShape& data = c.input(0);
  const PartialShape& ids = c.input(1);
  const std::optional<int64_t> segments = c.input_int(2);
  if (segments && *segments < 0)
    return absl::InvalidArgumentError(absl::StrCat("num_segments is ", *segments, "; it must be >= 0"));
  if (!data.has_rank() || !ids.has_rank()) return absl::OkStatus();
  if (ids.rank() > data.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("the shape of segment_ids, ", ids.ToString(),
                                                   ", must be a prefix of the shape of data, ", data.ToString()));
  }
  for (int i = 0; i < ids.rank(); ++i) THALWEG_RETURN_IF_ERROR(ShapeContext::MergeDim(data.dim(i), ids.dim(i)).status());
  Dims dims = {segments.value_or(kUnknownDim)};
  dims.insert(dims.end(), data.dims().begin() + ids.rank(), data.dims().end());
  c.set_output(0, PartialShape::OfDims(std::move(dims)));
  return absl::OkStatus();
}

template <typename Kernel, const RowMath& math>
absl::StatusOr<std::unique_ptr<thalweg::Kernel>> MakeFor(const KernelInit&) {
  return std::unique_ptr<thalweg::Kernel>(std::make_unique<Kernel>(math));
}

template <typename Op, bool kMean, typename... Ts>
void AddSegment(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeFor<SegmentKernel, kSortedMath<Op, kMean, Ts>>).template Type<Ts>("T"), ...);
}
template <typename Op, typename... Ts>
void AddUnsorted(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeFor<UnsortedSegmentKernel, kUnsortedMath<Op, Ts>>).template Type<Ts>("T").HostMemory("num_segments"), ...);
}

template <typename Op, bool kMean, typename... Lists>
void RegisterSegment(OpLibrary& lib, absl::string_view op, absl::string_view types) {
  lib.schemas.Add(absl::StrCat(op, "(data: T, segment_ids: Tindices) -> output: T"),
                  absl::StrCat("T: ", types, "; Tindices: {int32, int64}"))
      .Shape(SegmentShape).Cost(ReductionCost);
  (AddSegment<Op, kMean>(lib, op, Lists()), ...);
}
template <typename Op, typename... Lists>
void RegisterUnsorted(OpLibrary& lib, absl::string_view op, absl::string_view types, absl::string_view indices) {
  lib.schemas.Add(absl::StrCat(op, "(data: T, segment_ids: Tindices, num_segments: Tnumsegments) -> output: T"),
                  absl::StrCat("T: ", types, "; Tindices: ", indices, "; Tnumsegments: {int32, int64} = int32"))
      .Shape(UnsortedSegmentShape).Cost(ReductionCost);
  (AddUnsorted<Op>(lib, op, Lists()), ...);
}

}  // namespace

void RegisterSegmentOps(OpLibrary& lib) {
  RegisterSegment<SumSegments, false, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "SegmentSum", "numbertype");
  RegisterSegment<SumSegments, true, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "SegmentMean", "numbertype");
  RegisterSegment<ProdSegments, false, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "SegmentProd", "numbertype");
  RegisterSegment<MaxSegments, false, FloatTypes, SignedTypes, UnsignedTypes>(lib, "SegmentMax", "realnumbertype");
  RegisterSegment<MinSegments, false, FloatTypes, SignedTypes, UnsignedTypes>(lib, "SegmentMin", "realnumbertype");

  constexpr char kIndices[] = "{int32, int64}", kSmallIndices[] = "{int16, int32, int64}";
  RegisterUnsorted<SumSegments, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "UnsortedSegmentSum", "numbertype",
                                                                                      kSmallIndices);
  RegisterUnsorted<ProdSegments, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "UnsortedSegmentProd", "numbertype",
                                                                                       kIndices);
  RegisterUnsorted<MaxSegments, FloatTypes, SignedTypes, UnsignedTypes>(lib, "UnsortedSegmentMax", "realnumbertype", kIndices);
  RegisterUnsorted<MinSegments, FloatTypes, SignedTypes, UnsignedTypes>(lib, "UnsortedSegmentMin", "realnumbertype", kIndices);
}

}  // namespace thalweg::math
