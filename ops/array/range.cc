// Range: start, start + delta, ... up to limit. LinSpace: so many numbers from start to stop.
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

template <typename T>
std::string Text(T v) {
  if constexpr (std::is_integral_v<T>) return absl::StrCat(v);
  else return absl::StrCat(static_cast<double>(static_cast<std::conditional_t<sizeof(T) < 4, float, T>>(v)));
}

// ceil(|limit - start| / |delta|) without overflow; nullopt if it does not fit int64_t.
template <typename T>
std::optional<int64_t> StepCount(T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    const uint64_t from = static_cast<uint64_t>(static_cast<int64_t>(start));
    const uint64_t to = static_cast<uint64_t>(static_cast<int64_t>(limit));
    const uint64_t step = static_cast<uint64_t>(static_cast<int64_t>(delta));
    const uint64_t distance = delta > 0 ? to - from : from - to;
    const uint64_t size = delta > 0 ? step : 0 - step;
    const uint64_t count = distance / size + (distance % size != 0 ? 1 : 0);
    if (count > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(count);
  } else {
    using Wide = std::conditional_t<sizeof(T) < 4, float, T>;
    const double count = std::ceil(std::abs(static_cast<double>(static_cast<Wide>((limit - start) / delta))));
    if (!(count < 9.2e18)) return std::nullopt;  // also NaN
    return static_cast<int64_t>(count);
  }
}

template <typename T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  const auto values = [&] {
    return absl::StrCat("start ", Text(start), ", limit ", Text(limit), ", delta ", Text(delta));
  };
  if (delta == T(0)) return absl::InvalidArgumentError(absl::StrCat("delta must not be 0 (", values(), ")"));
  // Written so that NaN anywhere is refused.
  const bool reachable = delta > T(0) ? start <= limit : delta < T(0) && start >= limit;
  if (!reachable) {
    return absl::InvalidArgumentError(absl::StrCat("delta leads away from limit, or is not a number (", values(), ")"));
  }
  const std::optional<int64_t> count = StepCount(start, limit, delta);
  if (!count) {
    return absl::InvalidArgumentError(absl::StrCat("the range has more than 2^63-1 elements (", values(), ")"));
  }
  return *count;
}

// Element i, rounded as one multiplication and one addition of type T; integers wrap.
template <typename T>
T RangeElement(T start, T delta, int64_t i) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
  } else {
    return start + static_cast<T>(i) * delta;
  }
}

template <typename T>
class RangeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    static constexpr const char* kNames[] = {"start", "limit", "delta"};
    T args[3];
    for (int i = 0; i < 3; ++i) {
      THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(i), kNames[i], ScalarRule::kScalarOrVectorOfOne));
      args[i] = ctx.input(i).flat<T>()[0];
    }
    THALWEG_ASSIGN_OR_RETURN(const int64_t size, RangeSize(args[0], args[1], args[2]));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({size}));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    T* values = out->mutable_flat<T>().data();
    ctx.ParallelFor(size, 1.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] = RangeElement(args[0], args[2], i);
    });
    return absl::OkStatus();
  }
};

// The size as a dimension, if all three arguments are constants of type T.
template <typename T>
absl::StatusOr<int64_t> ConstantSize(const ShapeContext& c) {
  T args[3];
  for (int i = 0; i < 3; ++i) {
    const TensorLiteral* literal = c.input_literal(i);
    if (literal == nullptr || literal->dtype != DTypeOf<T>::value || literal->shape.num_elements() != 1) {
      return kUnknownDim;
    }
    literal->CopyTo(&args[i]);
    if (args[i] != args[i]) return kUnknownDim;  // not a number: the kernel's to refuse
  }
  return RangeSize(args[0], args[1], args[2]);
}

absl::StatusOr<int64_t> InferredSize(const ShapeContext& c) {
  switch (c.input_type(0)) {
    case DType::kFloat32: return ConstantSize<float>(c);
    case DType::kFloat64: return ConstantSize<double>(c);
    case DType::kFloat16: return ConstantSize<half>(c);
    case DType::kBFloat16: return ConstantSize<bfloat16>(c);
    case DType::kInt32: return ConstantSize<int32_t>(c);
    case DType::kInt64: return ConstantSize<int64_t>(c);
    default: return kUnknownDim;
  }
}

// Range(0, n, 1) has n elements, also where n is only a symbol.
int64_t SymbolicSize(const ShapeContext& c) {
  const std::optional<Dims> limit = KnownDims(c, 1);
  if (c.input_int(0) != 0 || c.input_int(2) != 1 || !limit || limit->size() != 1) return kUnknownDim;
  return (*limit)[0];
}

absl::Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  THALWEG_ASSIGN_OR_RETURN(int64_t size, InferredSize(c));
  if (!IsKnownDim(size)) size = SymbolicSize(c);
  return SetOutputDims(c, {size});
}

template <typename T>
void AddRangeKernel(OpLibrary& lib) {
  lib.kernels.Add("Range", "cpu", MakeKernel<RangeKernel<T>>)
      .template Type<T>("Tidx")
      .HostMemory("start")
      .HostMemory("limit")
      .HostMemory("delta");
}

// Evenly spaced; the last element is `stop` to the bit.
template <typename T>
class LinSpaceKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(0), "start"));
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(1), "stop"));
    THALWEG_ASSIGN_OR_RETURN(const int64_t count, IntScalarArg(ctx.input(2), "num"));
    if (count <= 0) return absl::InvalidArgumentError(absl::StrCat("num is ", count, "; it must be positive"));
    const T start = ctx.input(0).flat<T>()[0], stop = ctx.input(1).flat<T>()[0];
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Of({count})));
    T* values = out->mutable_flat<T>().data();
    const T step = count > 1 ? (stop - start) / static_cast<T>(count - 1) : T(0);
    ctx.ParallelFor(count, 1.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) values[i] = start + step * static_cast<T>(i);
    });
    if (count > 1) values[count - 1] = stop;
    return absl::OkStatus();
  }
};

absl::Status LinSpaceShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  const std::optional<int64_t> count = c.input_int(2);
  if (count && *count <= 0) return absl::InvalidArgumentError(absl::StrCat("num is ", *count, "; it must be positive"));
  return SetOutputDims(c, {count ? *count : kUnknownDim});
}

template <typename T>
void AddLinSpaceKernel(OpLibrary& lib) {
  lib.kernels.Add("LinSpace", "cpu", MakeKernel<LinSpaceKernel<T>>)
      .template Type<T>("T")
      .HostMemory("start")
      .HostMemory("stop")
      .HostMemory("num");
}

}  // namespace

void RegisterRange(OpLibrary& lib) {
  lib.schemas
      .Add("Range(start: Tidx, limit: Tidx, delta: Tidx) -> output: Tidx",
           "Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, uint64} = int32")
      .Shape(RangeShape)
      .Cost(WrittenBytesCost);
  AddRangeKernel<float>(lib);
  AddRangeKernel<double>(lib);
  AddRangeKernel<half>(lib);
  AddRangeKernel<bfloat16>(lib);
  AddRangeKernel<int32_t>(lib);
  AddRangeKernel<int64_t>(lib);
  lib.schemas
      .Add("LinSpace(start: T, stop: T, num: Tidx) -> output: T", "T: {bfloat16, half, float, double}; Tidx: {int32, int64} = int32")
      .Shape(LinSpaceShape)
      .Cost(WrittenBytesCost);
  AddLinSpaceKernel<float>(lib);
  AddLinSpaceKernel<double>(lib);
}

}  // namespace thalweg
