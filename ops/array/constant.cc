// Const, Fill and Empty.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/strided_copy.h"
#include "thalweg/ops/common/text_memory.h"

namespace thalweg {
namespace {

// Executors usually publish a constant themselves; this is for those that run it as any other node.
class ConstKernel : public Kernel {
 public:
  static absl::StatusOr<std::unique_ptr<Kernel>> Create(const KernelInit& init) {
    THALWEG_ASSIGN_OR_RETURN(TensorLiteralPtr value, init.Attr<TensorLiteralPtr>("value"));
    return std::unique_ptr<Kernel>(new ConstKernel(std::move(value)));
  }

  absl::Status Compute(KernelContext& ctx) override {
    if (value_->dtype != ctx.output_dtype(0)) {
      return absl::InvalidArgumentError(absl::StrCat("attribute value is a ", DTypeName(value_->dtype),
                                                     " tensor, but dtype is ", DTypeName(ctx.output_dtype(0))));
    }
    if (ctx.node().output_memory()[0] == MemoryKind::kHost || !IsPlainMemory(value_->dtype)) {
      THALWEG_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromLiteral(value_, ctx.host_allocator()));
      ctx.SetOutput(0, std::move(tensor));
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, value_->shape));
    value_->CopyTo(out->mutable_raw());
    return absl::OkStatus();
  }

 private:
  explicit ConstKernel(TensorLiteralPtr value) : value_(std::move(value)) {}
  const TensorLiteralPtr value_;
};

class FillKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ShapeArg(ctx.input(0), "dims", /*scalar_ok=*/true));
    const Tensor& value = ctx.input(1);
    THALWEG_RETURN_IF_ERROR(RequireScalar(value, "value", ScalarRule::kScalarOrVectorOfOne));
    THALWEG_RETURN_IF_ERROR(RequireTextMemory(ctx, value, shape.num_elements()));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    FillElements(ctx, value.dtype(), value.raw(), shape.num_elements(), out->mutable_raw());
    return absl::OkStatus();
  }
};

// Memory of a given shape: zeros, since what it holds may be anything if `init` is not asked for.
class EmptyKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, ShapeArg(ctx.input(0), "shape"));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (IsPlainMemory(out->dtype())) {
      std::memset(out->mutable_raw(), 0, static_cast<size_t>(shape.num_elements()) * DTypeSize(out->dtype()));
    }
    return absl::OkStatus();
  }
};

absl::Status EmptyShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ConstShape(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(const TensorLiteralPtr value, c.attrs().Get<TensorLiteralPtr>("value"));
  c.set_output(0, PartialShape::Known(value->shape));
  return absl::OkStatus();
}

absl::Status FillShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));  // the kernel takes a scalar too, if nobody knew that it is one (L21)
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  if (const std::optional<std::vector<int64_t>> dims = c.input_ints(0)) {
    for (const int64_t d : *dims) {
      if (d < 0) return absl::InvalidArgumentError(absl::StrCat("dims must not be negative, but one is ", d));
    }
  }
  THALWEG_ASSIGN_OR_RETURN(PartialShape out, c.input_as_shape(0));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void RegisterConstantOps(OpLibrary& lib) {
  lib.schemas.Add("Const() -> output: dtype", "value: tensor; dtype: type")
      .Shape(ConstShape)
      .Cost(NoCost)
      .Role(OpRole::kConstant);
  lib.schemas.Add("Fill(dims: index_type, value: T) -> output: T", "T: type; index_type: {int32, int64} = int32")
      .Shape(FillShape)
      .Cost(WrittenBytesCost);
  lib.kernels.Add("Const", "cpu", MakeFallibleKernel<ConstKernel>);
  lib.kernels.Add("Fill", "cpu", MakeKernel<FillKernel>).HostMemory("dims");
  lib.schemas.Add("Empty(shape: int32) -> output: dtype", "dtype: type; init: bool = false")
      .Stateful()
      .Shape(EmptyShape)
      .Cost(WrittenBytesCost);
  lib.kernels.Add("Empty", "cpu", MakeKernel<EmptyKernel>).HostMemory("shape");
}

}  // namespace thalweg
