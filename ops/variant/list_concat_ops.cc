// Elements of different lengths: one after the other in one tensor (concat), and the way back (split); lists joined to one.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/variant/tensor_list.h"
#include "thalweg/ops/variant/variant_ops.h"

namespace thalweg {
namespace {

// ---- Concat

// What is known of all elements: the length where they agree, and the dimensions after it.
struct ElementForm {
  int64_t length = kUnknownDim;
  PartialShape rest;
};

absl::StatusOr<ElementForm> FormOf(const PartialShape& shape) {
  ElementForm form;
  if (!shape.has_rank()) return form;
  if (shape.rank() == 0) return absl::InvalidArgumentError("scalars cannot be concatenated; stacking does that");
  form.length = shape.dim(0);
  THALWEG_ASSIGN_OR_RETURN(form.rest, PartialShape::Make(shape.dims().subspan(1)));
  return form;
}

// Completes the form by one element. `stated` is the length that the op or the list says all elements have.
absl::Status CompleteFormBy(int64_t index, const Tensor& element, int64_t stated, ElementForm* form) {
  if (element.rank() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("scalars cannot be concatenated, and element ", index, " is one; stacking does that"));
  }
  if (stated != kUnknownDim && element.dim(0) != stated) {
    return absl::InvalidArgumentError(absl::StrCat("element_shape says that elements have length ", stated,
                                                   ", but element ", index, " has shape ", element.shape().ToString()));
  }
  if (form->length == kUnknownDim) form->length = element.dim(0);
  THALWEG_ASSIGN_OR_RETURN(form->rest,
                           ShapeContext::Merge(form->rest, PartialShape::Known(WithoutLeadingDim(element.shape()))));
  return absl::OkStatus();
}

// Completes the form by the elements that are set, and checks these. If they do not agree on the length, that stays open.
absl::Status CompleteForm(const TensorList& list, ElementForm* form) {
  const int64_t stated = form->length;
  bool agree = true;
  absl::Status status;
  list.ForEachSet([&](int64_t index, const Tensor& element) {
    if (status.ok()) status = CompleteFormBy(index, element, stated, form);
    agree = agree && status.ok() && form->length == element.dim(0);
  });
  THALWEG_RETURN_IF_ERROR(status);
  if (!agree) form->length = kUnknownDim;
  return absl::OkStatus();
}

class ConcatKernel : public Kernel {
 public:
  explicit ConcatKernel(const KernelInit& init)
      : element_shape_(init.node().node_attrs().GetOr<PartialShape>("element_shape", PartialShape())) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, 0, ctx.output_dtype(0)));
    PartialShape shape = element_shape_;
    if (ctx.num_inputs() > 1) {
      THALWEG_ASSIGN_OR_RETURN(shape, ElementShapeInput(ctx, 1));
    }
    THALWEG_ASSIGN_OR_RETURN(shape, ShapeContext::Merge(shape, list->element_shape()));
    THALWEG_ASSIGN_OR_RETURN(ElementForm form, FormOf(shape));
    THALWEG_RETURN_IF_ERROR(CompleteForm(*list, &form));
    if (!form.rest.IsFullyKnown()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no element is set, so all dimensions of element_shape but the first must be known; it is ", shape.ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(const Shape lengths_shape, Shape::Make({list->size()}));
    THALWEG_ASSIGN_OR_RETURN(Tensor * lengths, ctx.AllocateOutput(1, lengths_shape));
    THALWEG_ASSIGN_OR_RETURN(const int64_t total, FillLengths(ctx, *list, form, lengths->mutable_flat<int64_t>()));
    return EmitElements(ctx, *list, form, lengths->flat<int64_t>(), total);
  }

 private:
  // The length of an element that was never set: the one given for it, else the one that all others have.
  static absl::StatusOr<int64_t> UnsetLength(KernelContext& ctx, const ElementForm& form, int64_t index) {
    if (ctx.num_inputs() > 2 && index < ctx.input(2).num_elements()) {
      const int64_t length = ctx.input(2).flat<int64_t>()[index];
      if (length >= 0) return length;
      return absl::InvalidArgumentError(absl::StrCat("leading_dims[", index, "] is negative: ", length));
    }
    if (form.length != kUnknownDim) return form.length;
    return absl::InvalidArgumentError(
        absl::StrCat("element ", index, " was never set, and leading_dims does not tell its length"));
  }

  static absl::StatusOr<int64_t> FillLengths(KernelContext& ctx, const TensorList& list, const ElementForm& form,
                                             absl::Span<int64_t> lengths) {
    int64_t total = 0;
    for (int64_t i = 0; i < list.size(); ++i) {
      const Tensor& element = list.element(i);
      if (element.initialized()) {
        lengths[i] = element.dim(0);
      } else {
        THALWEG_ASSIGN_OR_RETURN(lengths[i], UnsetLength(ctx, form, i));
      }
      if (!CheckedAdd(total, lengths[i], &total)) return absl::InvalidArgumentError("the sum of the lengths overflows");
    }
    return total;
  }

  static absl::Status EmitElements(KernelContext& ctx, const TensorList& list, const ElementForm& form,
                                   absl::Span<const int64_t> lengths, int64_t total) {
    THALWEG_ASSIGN_OR_RETURN(const Shape rest, form.rest.ToShape());
    THALWEG_ASSIGN_OR_RETURN(const Shape shape, WithLeadingDim(total, rest));
    std::vector<Tensor> elements;
    std::vector<int64_t> offsets;
    int64_t begin = 0, row = 0;
    list.ForEachSet([&](int64_t index, const Tensor& element) {
      for (; begin < index; ++begin) row += lengths[begin];
      elements.push_back(element);
      offsets.push_back(row * rest.num_elements());
    });
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (static_cast<int64_t>(elements.size()) < list.size()) ClearElements(out);
    CopyToOffsets(ctx, elements, offsets, out);
    return absl::OkStatus();
  }

  const PartialShape element_shape_;  // of the op without inputs for it
};

absl::Status ConcatShape(ShapeContext& c) {
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

// ---- Split

class SplitKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& tensor = ctx.input(0);
    const Tensor& lengths = ctx.input(2);
    if (tensor.rank() == 0) return absl::InvalidArgumentError("a scalar cannot be split");
    if (lengths.rank() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("lengths must be a vector, not ", lengths.shape().ToString()));
    }
    THALWEG_ASSIGN_OR_RETURN(PartialShape element_shape, ElementShapeInput(ctx, 1));
    const Shape rest = WithoutLeadingDim(tensor.shape());
    THALWEG_RETURN_IF_ERROR(CheckRest(element_shape, rest));
    TensorList list(tensor.dtype(), std::move(element_shape));
    THALWEG_RETURN_IF_ERROR(Cut(tensor, rest, lengths.flat<int64_t>(), &list));
    THALWEG_ASSIGN_OR_RETURN(OwnedList made, NewList(ctx, std::move(list)));
    ctx.SetOutput(0, std::move(made.handle));
    return absl::OkStatus();
  }

 private:
  // As TensorFlow does, takes the stated length for a hint.
  static absl::Status CheckRest(const PartialShape& element_shape, const Shape& rest) {
    THALWEG_ASSIGN_OR_RETURN(const ElementForm form, FormOf(element_shape));
    if (form.rest.IsCompatibleWith(rest)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("element_shape is ", element_shape.ToString(),
                                                   ", but the parts of the tensor end in ", rest.ToString()));
  }

  static absl::Status Cut(const Tensor& tensor, const Shape& rest, absl::Span<const int64_t> lengths, TensorList* list) {
    int64_t begin = 0;
    for (const int64_t length : lengths) {
      if (length < 0 || length > tensor.dim(0) - begin) {
        return absl::InvalidArgumentError(absl::StrCat("a part of length ", length, " cannot be cut from the ",
                                                       tensor.dim(0) - begin, " rows that are left of ", tensor.dim(0)));
      }
      THALWEG_ASSIGN_OR_RETURN(Shape shape, WithLeadingDim(length, rest));
      THALWEG_RETURN_IF_ERROR(list->Resize(list->size() + 1));
      list->Set(list->size() - 1, RowsAs(tensor, begin, begin + length, std::move(shape)));
      begin += length;
    }
    if (begin == tensor.dim(0)) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the lengths add up to ", begin, ", but the tensor has ", tensor.dim(0), " rows"));
  }
};

// ---- ConcatLists

class ConcatListsKernel : public Kernel {
 public:
  explicit ConcatListsKernel(const KernelInit& init)
      : dtype_(init.node().node_attrs().GetOr<DType>("element_dtype", DType::kInvalid)) {}

  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const TensorList* first, ListInput(ctx, 0, dtype_));
    THALWEG_ASSIGN_OR_RETURN(const TensorList* second, ListInput(ctx, 1, dtype_));
    if (first->element_shape() != second->element_shape()) {
      return absl::InvalidArgumentError(absl::StrCat("lists of elements of shape ", first->element_shape().ToString(),
                                                     " and ", second->element_shape().ToString(), " cannot be joined"));
    }
    const TensorList added = *second;  // the two may be one list
    THALWEG_ASSIGN_OR_RETURN(OwnedList owned, TakeList(ctx, 0));
    const int64_t old_size = owned.list->size();
    THALWEG_RETURN_IF_ERROR(owned.list->Resize(old_size + added.size()));
    added.ForEachSet([&](int64_t index, const Tensor& element) { owned.list->Set(old_size + index, element); });
    ctx.SetOutput(0, std::move(owned.handle));
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
};

}  // namespace

void RegisterListConcatOps(OpLibrary& lib) {
  const std::vector<DType> types = ListElementTypes();
  lib.schemas
      .Add("TensorListConcat(input_handle: variant) -> (tensor: element_dtype, lengths: int64)",
           "element_dtype: type; element_shape: shape = unknown")
      .Shape(ConcatShape)
      .Cost(MovedBytesCost);
  lib.schemas
      .Add("TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64) "
           "-> (tensor: element_dtype, lengths: int64)",
           "element_dtype: type; shape_type: {int32, int64}")
      .Shape(ConcatShape)
      .Cost(MovedBytesCost);
  lib.schemas
      .Add("TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) -> output_handle: variant",
           "element_dtype: type; shape_type: {int32, int64}")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.schemas
      .Add("TensorListConcatLists(input_a: variant, input_b: variant) -> output: variant", "element_dtype: type")
      .Shape(ScalarShape)
      .Cost(NoCost);
  lib.kernels.Add("TensorListConcat", "cpu", MakeKernel<ConcatKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListConcatV2", "cpu", MakeKernel<ConcatKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListSplit", "cpu", MakeKernel<SplitKernel>).Type("element_dtype", types);
  lib.kernels.Add("TensorListConcatLists", "cpu", MakeKernel<ConcatListsKernel>);
}

}  // namespace thalweg
