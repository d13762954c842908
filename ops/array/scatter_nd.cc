// ScatterNd, TensorScatterUpdate, TensorScatterAdd, -Sub, -Max, -Min, ScatterNdNonAliasingAdd: elements or slices of a tensor
// replaced by, or combined with, updates at given coordinates. Updates are applied in order, one thread, so that results do
// not depend on how work was split where coordinates repeat.
#include <algorithm>
#include <complex>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// How an update joins what is there. Integers wrap around.
template <typename T>
using SumT = std::conditional_t<std::is_integral_v<T>, std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>, T>;

struct AddUpdate {
  template <typename T> static T Join(T a, T b) { return static_cast<T>(static_cast<SumT<T>>(a) + static_cast<SumT<T>>(b)); }
  static bool Join(bool a, bool b) { return a || b; }
  static std::string Join(const std::string& a, const std::string& b) { return absl::StrCat(a, b); }
};
struct SubUpdate {
  template <typename T> static T Join(T a, T b) { return static_cast<T>(static_cast<SumT<T>>(a) - static_cast<SumT<T>>(b)); }
};
struct MaxUpdate {
  template <typename T> static T Join(T a, T b) { return a < b ? b : a; }
};
struct MinUpdate {
  template <typename T> static T Join(T a, T b) { return b < a ? b : a; }
};
struct AssignUpdate {};

// What the arguments mean: `count` coordinates of `depth` numbers each, and blocks of elements.
struct ScatterPlan {
  int64_t count = 0;
  int64_t depth = 0;
  int64_t block = 0;
};

// `target` is the tensor that receives the updates.
absl::StatusOr<ScatterPlan> PlanScatter(const Shape& target, const Shape& indices, const Shape& updates) {
  if (indices.rank() == 0) return absl::InvalidArgumentError("indices must have at least rank 1, but it is a scalar");
  if (target.rank() == 0) return absl::InvalidArgumentError("updates cannot be scattered into a scalar");
  ScatterPlan plan;
  plan.depth = indices.dim(indices.rank() - 1);
  if (plan.depth > target.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last dimension of indices is ", plan.depth, ", more than the rank of ", target.ToString()));
  }
  plan.count = indices.NumElements(0, indices.rank() - 1);
  plan.block = target.NumElements(static_cast<int>(plan.depth), target.rank());
  Dims expected(indices.dims().begin(), indices.dims().end() - 1);
  expected.insert(expected.end(), target.dims().begin() + plan.depth, target.dims().end());
  if (!std::equal(expected.begin(), expected.end(), updates.dims().begin(), updates.dims().end())) {
    return absl::InvalidArgumentError(absl::StrCat("updates has shape ", updates.ToString(), ", but indices of shape ",
                                                   indices.ToString(), " into ", target.ToString(), " ask for ",
                                                   PartialShape::OfDims(expected).ToString()));
  }
  if (plan.count > 0 && target.num_elements() == 0) {  // L22
    return absl::InvalidArgumentError(
        absl::StrCat(plan.count, " indices into a tensor of shape ", target.ToString(), ", which has no elements"));
  }
  return plan;
}

absl::StatusOr<bool> IgnoresBadIndices(const NodeAttrs& attrs) {
  const std::string policy = attrs.GetOr<std::string>("bad_indices_policy", "");
  if (policy == "IGNORE") return true;
  if (policy.empty() || policy == "DEFAULT" || policy == "ERROR") return false;
  return absl::InvalidArgumentError(
      absl::StrCat("bad_indices_policy is '", policy, "'; it must be DEFAULT, ERROR, IGNORE or empty"));
}

// The element offset of each coordinate in `target`; -1 for one that is outside and to be ignored.
absl::Status FillOffsets(const Shape& target, const Tensor& indices, const ScatterPlan& plan, bool ignore_bad,
                         absl::Span<int64_t> offsets) {
  const Dims strides = RowMajorStrides(target);
  const auto fill = [&](auto values) {
    for (int64_t i = 0; i < plan.count; ++i) {
      const auto coordinate = values.subspan(i * plan.depth, plan.depth);
      int64_t offset = 0;
      for (int64_t d = 0; d < plan.depth && offset >= 0; ++d) {
        const int64_t index = static_cast<int64_t>(coordinate[d]);
        offset = IndexInRange(index, target.dim(static_cast<int>(d))) ? offset + index * strides[d] : -1;
      }
      offsets[i] = offset;
      if (offset >= 0 || ignore_bad) continue;
      return absl::InvalidArgumentError(absl::StrCat("indices[", i, "] is [", absl::StrJoin(coordinate, ","),
                                                     "], which does not lie in a tensor of shape ", target.ToString()));
    }
    return absl::OkStatus();
  };
  if (indices.dtype() == DType::kUInt16) return fill(indices.flat<uint16_t>());
  return WithIndices(indices, fill);
}

// Joins block after block. T is the storage type.
template <typename Update, typename T>
void ApplyUpdates(const ScatterPlan& plan, absl::Span<const int64_t> offsets, const void* updates, void* target) {
  const T* from = static_cast<const T*>(updates);
  T* to = static_cast<T*>(target);
  for (int64_t i = 0; i < plan.count; ++i, from += plan.block) {
    if (offsets[i] < 0) continue;
    T* block = to + offsets[i];
    if constexpr (std::is_same_v<T, std::string>) {
      for (int64_t k = 0; k < plan.block; ++k) block[k] = Update::Join(block[k], from[k]);
    } else {
      for (int64_t k = 0; k < plan.block; ++k) {
        block[k] = static_cast<T>(Update::Join(static_cast<ComputingT<T>>(block[k]), static_cast<ComputingT<T>>(from[k])));
      }
    }
  }
}

// Replaces block after block, whatever the type.
void AssignUpdates(DType dtype, const ScatterPlan& plan, absl::Span<const int64_t> offsets, const void* updates, void* target) {
  WithCell(dtype, [&](auto cell) {
    using Cell = decltype(cell);
    const char* from = static_cast<const char*>(updates);
    for (int64_t i = 0; i < plan.count; ++i) {
      if (offsets[i] < 0) continue;
      Cell::CopyRun(static_cast<char*>(target) + offsets[i] * Cell::kBytes, from + i * plan.block * Cell::kBytes, plan.block);
    }
  });
}

// What all scatter kernels do once the target holds its start values.
template <typename Update, typename T>
absl::Status Scatter(KernelContext& ctx, const Shape& shape, const Tensor& indices, const Tensor& updates, const ScatterPlan& plan,
                     bool ignore_bad, void* target) {
  if (plan.count == 0) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(Tensor offsets, ctx.AllocateTemp(DType::kInt64, Shape::Of({plan.count})));
  const absl::Span<int64_t> values = offsets.mutable_flat<int64_t>();
  THALWEG_RETURN_IF_ERROR(FillOffsets(shape, indices, plan, ignore_bad, values));
  if constexpr (std::is_same_v<Update, AssignUpdate>) AssignUpdates(updates.dtype(), plan, values, updates.raw(), target);
  else ApplyUpdates<Update, T>(plan, values, updates.raw(), target);
  return absl::OkStatus();
}

class ScatterBase : public Kernel {
 protected:
  explicit ScatterBase(bool ignore_bad) : ignore_bad_(ignore_bad) {}
  const bool ignore_bad_;
};

template <typename K>
absl::StatusOr<std::unique_ptr<Kernel>> MakeScatter(const KernelInit& init) {
  THALWEG_ASSIGN_OR_RETURN(const bool ignore_bad, IgnoresBadIndices(init.node().node_attrs()));
  return std::unique_ptr<Kernel>(std::make_unique<K>(ignore_bad));
}

// Into zeros of a given shape; updates at one place add up.
template <typename T>
class ScatterNdKernel final : public ScatterBase {
 public:
  explicit ScatterNdKernel(bool ignore_bad) : ScatterBase(ignore_bad) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ShapeArg(ctx.input(2), "shape"));
    THALWEG_ASSIGN_OR_RETURN(const ScatterPlan plan, PlanScatter(shape, ctx.input(0).shape(), ctx.input(1).shape()));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (IsPlainMemory(out->dtype())) {
      std::memset(out->mutable_raw(), 0, static_cast<size_t>(shape.num_elements()) * DTypeSize(out->dtype()));
    }
    return Scatter<AddUpdate, T>(ctx, shape, ctx.input(0), ctx.input(1), plan, ignore_bad_, out->mutable_raw());
  }
};

// Into a copy of a tensor, or into the tensor itself where nobody else needs it.
template <typename Update, typename T>
class TensorScatterKernel final : public ScatterBase {
 public:
  explicit TensorScatterKernel(bool ignore_bad) : ScatterBase(ignore_bad) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(const ScatterPlan plan, PlanScatter(shape, ctx.input(1).shape(), ctx.input(2).shape()));
    const void* before = ctx.input(0).raw();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocateOutput({0}, 0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    if (out->raw() != before) StridedCopy(ctx, out->dtype(), {{shape.num_elements(), 1, 1}}, before, out->mutable_raw());
    return Scatter<Update, T>(ctx, shape, ctx.input(1), ctx.input(2), plan, ignore_bad_, out->mutable_raw());
  }
};

// indices and updates agree with the tensor of `target` dimensions as far as is known.
absl::Status CheckScatter(ShapeContext& c, const PartialShape& target, int indices_input, int updates_input) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(indices_input, 1));
  const PartialShape& indices = c.input(indices_input);
  const PartialShape& updates = c.input(updates_input);
  if (!target.has_rank() || !indices.has_rank() || !updates.has_rank()) return absl::OkStatus();
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (!IsKnownDim(depth)) return absl::OkStatus();
  if (depth > target.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last dimension of indices is ", depth, ", more than the rank of ", target.ToString()));
  }
  Dims expected(indices.dims().begin(), indices.dims().end() - 1);
  expected.insert(expected.end(), target.dims().begin() + depth, target.dims().end());
  return ShapeContext::Merge(updates, PartialShape::OfDims(expected)).status();
}

absl::Status ScatterNdShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(2, 1));
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(2));
  THALWEG_RETURN_IF_ERROR(CheckScatter(c, shape, 0, 1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status TensorScatterShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRankAtLeast(0, 1));
  THALWEG_RETURN_IF_ERROR(CheckScatter(c, c.input(0), 1, 2));
  return UnchangedShape(c);
}

template <typename... Ts>
void AddScatterNd(OpLibrary& lib, TypeList<Ts...>) {
  (lib.kernels.Add("ScatterNd", "cpu", MakeScatter<ScatterNdKernel<Ts>>).template Type<Ts>("T").HostMemory("shape"), ...);
}

template <typename Update, typename... Ts>
void AddTensorScatter(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", MakeScatter<TensorScatterKernel<Update, Ts>>).template Type<Ts>("T"), ...);
}

template <typename Update, typename... Lists>
void RegisterTensorScatter(OpLibrary& lib, absl::string_view op) {
  lib.schemas
      .Add(absl::StrCat(op, "(tensor: T, indices: Tindices, updates: T) -> output: T"),
           "T: type; Tindices: {int32, int64}; bad_indices_policy: string = \"\"")
      .Shape(TensorScatterShape)
      .Cost(CopyCost);
  (AddTensorScatter<Update>(lib, op, Lists()), ...);
}

}  // namespace

void RegisterTensorScatterOps(OpLibrary& lib) {
  lib.schemas
      .Add("ScatterNd(indices: Tindices, updates: T, shape: Tindices) -> output: T",
           "T: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = \"\"")
      .Shape(ScatterNdShape)
      .Cost(CopyCost);
  AddScatterNd(lib, FloatTypes());
  AddScatterNd(lib, SignedTypes());
  AddScatterNd(lib, UnsignedTypes());
  AddScatterNd(lib, ComplexTypes());
  AddScatterNd(lib, TypeList<bool, std::string>());

  RegisterTensorScatter<AddUpdate, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "TensorScatterAdd");
  RegisterTensorScatter<SubUpdate, FloatTypes, SignedTypes, UnsignedTypes, ComplexTypes>(lib, "TensorScatterSub");
  RegisterTensorScatter<MaxUpdate, FloatTypes, SignedTypes, UnsignedTypes>(lib, "TensorScatterMax");
  RegisterTensorScatter<MinUpdate, FloatTypes, SignedTypes, UnsignedTypes>(lib, "TensorScatterMin");

  lib.schemas
      .Add("TensorScatterUpdate(tensor: T, indices: Tindices, updates: T) -> output: T",
           "T: type; Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = \"\"")
      .Shape(TensorScatterShape)
      .Cost(CopyCost);
  lib.kernels.Add("TensorScatterUpdate", "cpu", MakeScatter<TensorScatterKernel<AssignUpdate, void>>);

  lib.schemas
      .Add("ScatterNdNonAliasingAdd(input: T, indices: Tindices, updates: T) -> output: T",
           "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "
           "uint16, complex128, half, uint32, uint64, bool}; Tindices: {int32, int64}; bad_indices_policy: string = \"\"")
      .Shape(TensorScatterShape)
      .Cost(CopyCost);
  AddTensorScatter<AddUpdate>(lib, "ScatterNdNonAliasingAdd", FloatTypes());
  AddTensorScatter<AddUpdate>(lib, "ScatterNdNonAliasingAdd", SignedTypes());
  AddTensorScatter<AddUpdate>(lib, "ScatterNdNonAliasingAdd", UnsignedTypes());
  AddTensorScatter<AddUpdate>(lib, "ScatterNdNonAliasingAdd", ComplexTypes());
  AddTensorScatter<AddUpdate>(lib, "ScatterNdNonAliasingAdd", TypeList<bool>());
}

}  // namespace thalweg
