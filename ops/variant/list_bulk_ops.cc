// Many elements of a tensor list as rows of one tensor: stack and gather, and the way back.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/variant/tensor_list.h"
#include "thalweg/ops/variant/variant_ops.h"

namespace thalweg {
namespace {

// ---- Stack and Gather

// The shape that the elements which are taken have: what the op and the list say.
absl::StatusOr<PartialShape> StatedShape(KernelContext& ctx, const TensorList& list, int shape_input) {
  THALWEG_ASSIGN_OR_RETURN(const PartialShape shape, ElementShapeInput(ctx, shape_input));
  return ShapeContext::Merge(shape, list.element_shape());
}

// The same, completed by elements that are set, which must have been enough.
absl::StatusOr<Shape> CompleteShape(const PartialShape& shape, bool takes_any) {
  if (shape.IsFullyKnown()) return shape.ToShape();
  return absl::InvalidArgumentError(absl::StrCat(
      takes_any ? "no element is set" : "no element is taken", ", so nothing completes the element_shape ", shape.ToString()));
}

absl::Status CheckRow(int64_t index, const Tensor& element, const Shape& row) {
  if (element.shape() == row) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("element ", index, " has shape ", element.shape().ToString(),
                                                 ", but all must have shape ", row.ToString()));
}

class StackKernel : public Kernel {
 public:
  explicit StackKernel(const KernelInit& init)
      : num_elements_(init.node().node_attrs().GetOr<int64_t>("num_elements", -1)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, ctx.output_dtype(0)));
    if (num_elements_ != -1 && num_elements_ != list->size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("num_elements is ", num_elements_, ", but the list has ", list->size(), " elements"));
    }
    THALWEG_ASSIGN_OR_RETURN(PartialShape stated, StatedShape(ctx, *list, 1));
    if (!stated.IsFullyKnown()) {
      THALWEG_ASSIGN_OR_RETURN(stated, MergedWithElements(*list, std::move(stated)));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape row, CompleteShape(stated, list->size() > 0));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, WithLeadingDim(list->size(), row));
    std::vector<Tensor> elements;
    std::vector<int64_t> offsets;
    absl::Status status;
    list->ForEachSet([&](int64_t index, const Tensor& element) {
      status.Update(CheckRow(index, element, row));
      elements.push_back(element);
      offsets.push_back(index * row.num_elements());
    });
    THALWEG_RETURN_IF_ERROR(status);
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (static_cast<int64_t>(elements.size()) < list->size()) ClearElements(out);
    CopyToOffsets(ctx, elements, offsets, out);
    return absl::OkStatus();
  }

 private:
  const int64_t num_elements_;
};

class GatherKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, ctx.output_dtype(0)));
    const absl::Span<const int32_t> indices = ctx.input(1).flat<int32_t>();
    std::vector<Tensor> elements;
    std::vector<int64_t> places;
    THALWEG_RETURN_IF_ERROR(FindSet(*list, indices, &elements, &places));
    THALWEG_ASSIGN_OR_RETURN(PartialShape stated, StatedShape(ctx, *list, 2));
    for (size_t i = 0; i < elements.size() && !stated.IsFullyKnown(); ++i) {
      THALWEG_ASSIGN_OR_RETURN(stated, ShapeContext::Merge(stated, PartialShape::Known(elements[i].shape())));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape row, CompleteShape(stated, !indices.empty()));
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, WithLeadingDim(static_cast<int64_t>(indices.size()), row));
    for (size_t i = 0; i < elements.size(); ++i) {
      THALWEG_RETURN_IF_ERROR(CheckRow(indices[places[i]], elements[i], row));
      places[i] *= row.num_elements();
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (elements.size() < indices.size()) ClearElements(out);
    CopyToOffsets(ctx, elements, places, out);
    return absl::OkStatus();
  }

 private:
  // The elements among `indices` that are set, and where in `indices` they are named.
  static absl::Status FindSet(const TensorList& list, absl::Span<const int32_t> indices, std::vector<Tensor>* elements,
                              std::vector<int64_t>* places) {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || indices[i] >= list.size()) {
        return absl::InvalidArgumentError(absl::StrCat("there is no element ", indices[i], " in a list of ", list.size()));
      }
      const Tensor& element = list.element(indices[i]);
      if (!element.initialized()) continue;
      elements->push_back(element);
      places->push_back(static_cast<int64_t>(i));
    }
    return absl::OkStatus();
  }
};

PartialShape RowsOf(int64_t rows, const PartialShape& row) {
  if (!row.has_rank() || row.rank() >= kMaxRank) return PartialShape();
  Dims dims(1, rows);
  dims.insert(dims.end(), row.dims().begin(), row.dims().end());
  return PartialShape::OfDims(std::move(dims));
}

absl::Status StackShape(ShapeContext& c) {
  const int64_t n = c.attrs().GetOr<int64_t>("num_elements", -1);
  c.set_output(0, RowsOf(n >= 0 ? n : kUnknownDim, KnownElementShape(c, 1)));
  return absl::OkStatus();
}

absl::Status GatherShape(ShapeContext& c) {
  c.set_output(0, RowsOf(c.input(1).rank() == 1 ? c.input(1).dim(0) : kUnknownDim, KnownElementShape(c, 2)));
  return absl::OkStatus();
}

// ---- FromTensor and Scatter

absl::Status RequireRows(const Tensor& tensor) {
  if (tensor.rank() > 0) return absl::OkStatus();
  return absl::InvalidArgumentError("a scalar has no rows that could be elements of a list");
}

class FromTensorKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& tensor = ctx.input(0);
    THALWEG_RETURN_IF_ERROR(RequireRows(tensor));
    THALWEG_ASSIGN_OR_RETURN(PartialShape element_shape, ElementShapeInput(ctx, 1));
    TensorList list(tensor.dtype(), std::move(element_shape));
    const Shape row = WithoutLeadingDim(tensor.shape());
    THALWEG_RETURN_IF_ERROR(list.CheckFits(tensor.dtype(), row));
    THALWEG_RETURN_IF_ERROR(list.Resize(tensor.dim(0)));
    for (int64_t i = 0; i < tensor.dim(0); ++i) list.Set(i, RowsAs(tensor, i, i + 1, row));
    THALWEG_ASSIGN_OR_RETURN(OwnedList made, NewList(ctx, std::move(list)));
    ctx.SetOutput(0, std::move(made.handle));
    return absl::OkStatus();
  }
};

// What both scatters check: as many rows as indices, none of them negative. Gives the highest index, -1 if there is none.
absl::StatusOr<int64_t> CheckScatter(const Tensor& tensor, const Tensor& indices) {
  THALWEG_RETURN_IF_ERROR(RequireRows(tensor));
  if (indices.rank() != 1 || indices.dim(0) != tensor.dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("indices of shape ", indices.shape().ToString(),
                                                   " do not fit the rows of a tensor of shape ", tensor.shape().ToString()));
  }
  int64_t highest = -1;
  for (const int32_t index : indices.flat<int32_t>()) {
    if (index < 0) return absl::InvalidArgumentError(absl::StrCat("indices must be >= 0, not ", index));
    highest = std::max<int64_t>(highest, index);
  }
  return highest;
}

absl::Status ScatterRows(const Tensor& tensor, const Tensor& indices, TensorList* list) {
  const Shape row = WithoutLeadingDim(tensor.shape());
  THALWEG_RETURN_IF_ERROR(list->CheckFits(tensor.dtype(), row));
  const absl::Span<const int32_t> to = indices.flat<int32_t>();
  for (size_t i = 0; i < to.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i);
    list->Set(to[i], RowsAs(tensor, at, at + 1, row));
  }
  return absl::OkStatus();
}

class ScatterKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& tensor = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(const int64_t highest, CheckScatter(tensor, ctx.input(1)));
    THALWEG_ASSIGN_OR_RETURN(PartialShape element_shape, ElementShapeInput(ctx, 2));
    int64_t size = -1;
    if (ctx.num_inputs() > 3) {
      THALWEG_ASSIGN_OR_RETURN(size, IntScalarArg(ctx.input(3), "num_elements"));
    }
    if (size < -1 || (size >= 0 && highest >= size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("num_elements is ", size, "; it must be -1 or above the highest index, ", highest));
    }
    TensorList list(tensor.dtype(), std::move(element_shape));
    THALWEG_RETURN_IF_ERROR(list.Resize(size >= 0 ? size : highest + 1));
    THALWEG_RETURN_IF_ERROR(ScatterRows(tensor, ctx.input(1), &list));
    THALWEG_ASSIGN_OR_RETURN(OwnedList made, NewList(ctx, std::move(list)));
    ctx.SetOutput(0, std::move(made.handle));
    return absl::OkStatus();
  }
};

class ScatterIntoKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const int64_t highest, CheckScatter(ctx.input(1), ctx.input(2)));
    THALWEG_RETURN_IF_ERROR(ListInput(ctx, 0, ctx.input_dtype(1)).status());
    THALWEG_ASSIGN_OR_RETURN(OwnedList owned, TakeList(ctx, 0));
    if (highest >= owned.list->size()) THALWEG_RETURN_IF_ERROR(owned.list->Resize(highest + 1));
    THALWEG_RETURN_IF_ERROR(ScatterRows(ctx.input(1), ctx.input(2), owned.list));
    ctx.SetOutput(0, std::move(owned.handle));
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterListBulkOps(OpLibrary& lib) {
  const std::vector<DType> types = ListElementTypes();
  lib.schemas
      .Add("TensorListStack(input_handle: variant, element_shape: int32) -> tensor: element_dtype",
           "element_dtype: type; num_elements: int = -1")
      .Shape(StackShape)
      .Cost(MovedBytesCost);
  lib.schemas
      .Add("TensorListGather(input_handle: variant, indices: int32, element_shape: int32) -> values: element_dtype",
           "element_dtype: type")
      .Shape(GatherShape)
      .Cost(MovedBytesCost);
  lib.schemas
      .Add("TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> output_handle: variant",
           "element_dtype: type; shape_type: {int32, int64}")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas
      .Add("TensorListScatter(tensor: element_dtype, indices: int32, element_shape: shape_type) -> output_handle: variant",
           "element_dtype: type; shape_type: {int32, int64}")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas
      .Add("TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32) "
           "-> output_handle: variant",
           "element_dtype: type; shape_type: {int32, int64}")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas
      .Add("TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype, indices: int32) "
           "-> output_handle: variant",
           "element_dtype: type")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.kernels.Add("TensorListStack", "cpu", MakeKernel<StackKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListGather", "cpu", MakeKernel<GatherKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListFromTensor", "cpu", MakeKernel<FromTensorKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListScatter", "cpu", MakeKernel<ScatterKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListScatterV2", "cpu", MakeKernel<ScatterKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListScatterIntoExistingList", "cpu", MakeKernel<ScatterIntoKernel>).Type("element_dtype", types);
}

}  // namespace thalweg
