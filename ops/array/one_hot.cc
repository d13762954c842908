// OneHot: indices spread over a new axis.
#include <optional>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/array/shape_values.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/element_cell.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/text_memory.h"

namespace thalweg {
namespace {

// Where the new axis goes: -1 is last; other negative values are no good.
absl::StatusOr<int> NewAxis(int64_t axis, int indices_rank) {
  if (axis == -1) return indices_rank;
  if (axis < 0 || axis > indices_rank) {
    return absl::InvalidArgumentError(absl::StrCat("axis is ", axis, "; it must be -1 or in [0,", indices_rank, "]"));
  }
  return static_cast<int>(axis);
}

absl::Status NegativeDepth(int64_t depth) {
  return absl::InvalidArgumentError(absl::StrCat("depth is ", depth, "; it must be >= 0"));
}

class OneHotKernel : public Kernel {
 public:
  explicit OneHotKernel(const KernelInit& init) : axis_(init.node().node_attrs().GetOr<int64_t>("axis", -1)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const int axis, NewAxis(axis_, indices.rank()));
    THALWEG_ASSIGN_OR_RETURN(const int64_t depth, IntScalarArg(ctx.input(1), "depth"));
    if (depth < 0) return NegativeDepth(depth);
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(2), "on_value"));
    THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(3), "off_value"));
    Dims dims(indices.shape().dims().begin(), indices.shape().dims().end());
    dims.insert(dims.begin() + axis, depth);
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    THALWEG_RETURN_IF_ERROR(RequireTextMemory(ctx, ctx.input(3), shape.num_elements()));
    THALWEG_RETURN_IF_ERROR(RequireTextMemory(ctx, ctx.input(2), indices.num_elements()));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    FillElements(ctx, out->dtype(), ctx.input(3).raw(), shape.num_elements(), out->mutable_raw());
    return SetHot(indices, depth, indices.shape().NumElements(axis, indices.rank()), ctx.input(2).raw(), out);
  }

 private:
  // Element i of indices stands at (i / inner, i % inner); out-of-range indices leave their row off.
  static absl::Status SetHot(const Tensor& indices, int64_t depth, int64_t inner, const void* on, Tensor* out) {
    char* base = static_cast<char*>(out->mutable_raw());
    return WithIndices(indices, [&](auto values) {
      WithCell(out->dtype(), [&](auto cell) {
        using Cell = decltype(cell);
        for (size_t i = 0; i < values.size(); ++i) {
          const int64_t index = static_cast<int64_t>(values[i]);
          if (!IndexInRange(index, depth)) continue;
          const int64_t at = static_cast<int64_t>(i);
          Cell::Copy(base + ((at / inner * depth + index) * inner + at % inner) * Cell::kBytes,
                     static_cast<const char*>(on));
        }
      });
      return absl::OkStatus();
    });
  }

  const int64_t axis_;
};

absl::Status OneHotShape(ShapeContext& c) {
  const PartialShape& indices = c.input(0);
  THALWEG_ASSIGN_OR_RETURN(const std::optional<int64_t> depth, ConstantScalar(c, 1));
  if (depth && *depth < 0) return NegativeDepth(*depth);
  const int64_t wanted = c.attrs().GetOr<int64_t>("axis", -1);
  if (!indices.has_rank()) return wanted < -1 ? NewAxis(wanted, kMaxRank).status() : absl::OkStatus();
  if (wanted > indices.rank()) {  // refused when it runs
    c.set_output(0, PartialShape::UnknownOfRank(indices.rank() + 1));
    return absl::OkStatus();
  }
  THALWEG_ASSIGN_OR_RETURN(const int axis, NewAxis(wanted, indices.rank()));
  const std::optional<Dims> known = KnownDims(c, 1);
  Dims dims(indices.dims().begin(), indices.dims().end());
  dims.insert(dims.begin() + axis, known && known->size() == 1 ? (*known)[0] : kUnknownDim);
  return SetOutputDims(c, std::move(dims));
}

}  // namespace

void RegisterOneHot(OpLibrary& lib) {
  lib.schemas
      .Add("OneHot(indices: TI, depth: int32, on_value: T, off_value: T) -> output: T",
           "axis: int = -1; T: type; TI: {uint8, int8, int32, int64} = int64")
      .Shape(OneHotShape)
      .Cost(WrittenBytesCost);
  lib.kernels.Add("OneHot", "cpu", MakeKernel<OneHotKernel>).HostMemory("depth");
}

}  // namespace thalweg
