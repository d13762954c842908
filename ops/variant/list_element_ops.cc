// Making tensor lists, their size and shape, and ops on one element.
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/variant/tensor_list.h"
#include "thalweg/ops/variant/variant_ops.h"

namespace thalweg {
namespace {

absl::Status CheckIndex(const TensorList& list, int64_t index) {
  if (index >= 0 && index < list.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no element ", index, " in a list of ", list.size()));
}

absl::StatusOr<Tensor> ZerosOf(KernelContext& ctx, DType dtype, const PartialShape& shape) {
  if (!shape.IsFullyKnown()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the element was never set, and reads as zeros only if its shape is known; it is ", shape.ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(const Shape known, shape.ToShape());
  return ZeroTensor(ctx, dtype, known);
}

// EmptyTensorList and TensorListReserve.
template <bool reserves>
class CreateKernel : public Kernel {
 public:
  explicit CreateKernel(const KernelInit& init)
      : dtype_(init.node().node_attrs().GetOr<DType>("element_dtype", DType::kInvalid)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeInput(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(const int64_t number,
                             IntScalarArg(ctx.input(1), reserves ? "num_elements" : "max_num_elements"));
    TensorList list(dtype_, std::move(shape));
    if (reserves) THALWEG_RETURN_IF_ERROR(list.Resize(number));
    else list.set_max_size(number);
    THALWEG_ASSIGN_OR_RETURN(OwnedList made, NewList(ctx, std::move(list)));
    ctx.SetOutput(0, std::move(made.handle));
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
};

class LengthKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<int32_t>()[0] = static_cast<int32_t>(list->size());
    return absl::OkStatus();
  }
};

// The scalar -1 for an unknown rank.
template <typename T>
class ElementShapeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0));
    const PartialShape& shape = list->element_shape();
    THALWEG_ASSIGN_OR_RETURN(const Shape form, shape.has_rank() ? Shape::Make({shape.rank()}) : Shape());
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, form));
    const absl::Span<T> dims = out->mutable_flat<T>();
    if (!shape.has_rank()) dims[0] = -1;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape.dim(i) > std::numeric_limits<T>::max()) {
        return absl::InvalidArgumentError(absl::StrCat("dimension ", i, " of ", shape.ToString(), " is no int32"));
      }
      dims[i] = static_cast<T>(shape.dim(i));
    }
    return absl::OkStatus();
  }
};

class ResizeKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t size, IntScalarArg(ctx.input(1), "size"));
    THALWEG_ASSIGN_OR_RETURN(OwnedList owned, TakeList(ctx, 0));
    THALWEG_RETURN_IF_ERROR(owned.list->Resize(size));
    ctx.SetOutput(0, std::move(owned.handle));
    return absl::OkStatus();
  }
};

class GetItemKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, ctx.output_dtype(0)));
    THALWEG_ASSIGN_OR_RETURN(const int64_t index, IntScalarArg(ctx.input(1), "index"));
    THALWEG_RETURN_IF_ERROR(CheckIndex(*list, index));
    const Tensor& element = list->element(index);
    if (element.initialized()) {
      ctx.SetOutput(0, element);
      return absl::OkStatus();
    }
    THALWEG_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeInput(ctx, 2));
    THALWEG_ASSIGN_OR_RETURN(shape, ShapeContext::Merge(shape, list->element_shape()));
    if (!shape.IsFullyKnown()) {
      THALWEG_ASSIGN_OR_RETURN(shape, MergedWithElements(*list, std::move(shape)));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor zeros, ZerosOf(ctx, list->dtype(), shape));
    ctx.SetOutput(0, std::move(zeros));
    return absl::OkStatus();
  }
};

class SetItemKernel : public Kernel {
 public:
  explicit SetItemKernel(const KernelInit& init)
      : may_grow_(init.node().node_attrs().GetOr<bool>("resize_if_index_out_of_bounds", false)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t index, IntScalarArg(ctx.input(1), "index"));
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0));
    THALWEG_RETURN_IF_ERROR(list->CheckFits(ctx.input_dtype(2), ctx.input(2).shape()));
    const bool grows = may_grow_ && index >= list->size();
    if (!grows) THALWEG_RETURN_IF_ERROR(CheckIndex(*list, index));
    THALWEG_ASSIGN_OR_RETURN(OwnedList owned, TakeList(ctx, 0));
    if (grows) THALWEG_RETURN_IF_ERROR(owned.list->Resize(index + 1));
    owned.list->Set(index, ctx.TakeInput(2));
    ctx.SetOutput(0, std::move(owned.handle));
    return absl::OkStatus();
  }

 private:
  const bool may_grow_;
};

class PushBackKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0));
    THALWEG_RETURN_IF_ERROR(list->CheckFits(ctx.input_dtype(1), ctx.input(1).shape()));
    if (list->max_size() >= 0 && list->size() >= list->max_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the list is full: it has ", list->size(), " elements, and max_num_elements is ", list->max_size()));
    }
    THALWEG_ASSIGN_OR_RETURN(OwnedList owned, TakeList(ctx, 0));
    THALWEG_RETURN_IF_ERROR(owned.list->Resize(owned.list->size() + 1));
    owned.list->Set(owned.list->size() - 1, ctx.TakeInput(1));
    ctx.SetOutput(0, std::move(owned.handle));
    return absl::OkStatus();
  }
};

class PopBackKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, ctx.output_dtype(1)));
    if (list->size() == 0) return absl::InvalidArgumentError("the list is empty");
    THALWEG_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeInput(ctx, 1));
    THALWEG_ASSIGN_OR_RETURN(shape, ShapeContext::Merge(shape, list->element_shape()));
    THALWEG_ASSIGN_OR_RETURN(OwnedList owned, TakeList(ctx, 0));
    Tensor element = owned.list->PopBack();
    if (!element.initialized()) {
      THALWEG_ASSIGN_OR_RETURN(element, ZerosOf(ctx, owned.list->dtype(), shape));
    }
    ctx.SetOutput(0, std::move(owned.handle));
    ctx.SetOutput(1, std::move(element));
    return absl::OkStatus();
  }
};

absl::Status GetItemShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  return absl::OkStatus();
}

absl::Status SetItemShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  return ScalarShape(c);
}

absl::Status PopBackShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Known(Shape()));
  return absl::OkStatus();
}

}  // namespace

void RegisterListElementOps(OpLibrary& lib) {
  const std::vector<DType> types = ListElementTypes();
  const char* const element_and_shape = "element_dtype: type; shape_type: {int32, int64}";
  lib.schemas.Add("EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> handle: variant", element_and_shape)
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas.Add("TensorListReserve(element_shape: shape_type, num_elements: int32) -> handle: variant", element_and_shape)
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas.Add("TensorListLength(input_handle: variant) -> length: int32").Shape(ScalarShape).Cost(NoCost);
  lib.schemas.Add("TensorListElementShape(input_handle: variant) -> element_shape: shape_type", "shape_type: {int32, int64}")
      .Shape(UnknownShape)
      .Cost(NoCost);
  lib.schemas.Add("TensorListResize(input_handle: variant, size: int32) -> output_handle: variant")
      .Shape(SetItemShape)
      .Cost(NoCost);
  // The shape that is given need not be that of an element that was set.
  lib.schemas
      .Add("TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) -> item: element_dtype",
           "element_dtype: type; Tshape: {int32, int64} = int32")
      .Shape(GetItemShape)
      .Cost(NoCost);
  lib.schemas
      .Add("TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> output_handle: variant",
           "element_dtype: type; resize_if_index_out_of_bounds: bool = false")
      .Shape(SetItemShape)
      .Cost(NoCost);
  lib.schemas
      .Add("TensorListPushBack(input_handle: variant, tensor: element_dtype) -> output_handle: variant",
           "element_dtype: type")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas
      .Add("TensorListPopBack(input_handle: variant, element_shape: int32) -> (output_handle: variant, tensor: element_dtype)",
           "element_dtype: type")
      .Shape(PopBackShape)
      .Cost(NoCost);
  lib.kernels.Add("EmptyTensorList", "cpu", MakeKernel<CreateKernel<false>>);
  lib.kernels.Add("TensorListReserve", "cpu", MakeKernel<CreateKernel<true>>);
  lib.kernels.Add("TensorListLength", "cpu", MakeKernel<LengthKernel>);
  lib.kernels.Add("TensorListElementShape", "cpu", MakeKernel<ElementShapeKernel<int32_t>>).Type<int32_t>("shape_type");
  lib.kernels.Add("TensorListElementShape", "cpu", MakeKernel<ElementShapeKernel<int64_t>>).Type<int64_t>("shape_type");
  lib.kernels.Add("TensorListResize", "cpu", MakeKernel<ResizeKernel>);
  lib.kernels.Add("TensorListGetItem", "cpu", MakeKernel<GetItemKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListSetItem", "cpu", MakeKernel<SetItemKernel>);
  lib.kernels.Add("TensorListPushBack", "cpu", MakeKernel<PushBackKernel>);
  lib.kernels.Add("TensorListPopBack", "cpu", MakeKernel<PopBackKernel>).Type("element_dtype", types);
}

}  // namespace thalweg
