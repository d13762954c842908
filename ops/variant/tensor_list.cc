#include "thalweg/ops/variant/tensor_list.h"

#include <atomic>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

// TensorFlow counts elements with int32.
constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

}  // namespace

std::string TensorList::DebugString() const {
  return absl::StrCat("list of ", size_, " ", DTypeName(dtype_), element_shape_.ToString());
}

const Tensor& TensorList::element(int64_t index) const {
  static const Tensor& unset = *new Tensor;
  const Tensor* element = elements_.Find(index);
  return element != nullptr ? *element : unset;
}

absl::Status TensorList::Resize(int64_t size) {
  if (size < 0) return absl::InvalidArgumentError(absl::StrCat("the size of a list must be >= 0, not ", size));
  if (size > kMaxSize) return absl::ResourceExhaustedError(absl::StrCat("a list cannot have ", size, " elements"));
  if (size < size_) elements_.Truncate(size);
  size_ = size;
  return absl::OkStatus();
}

Tensor TensorList::PopBack() {
  --size_;
  if (elements_.Find(size_) == nullptr) return Tensor();
  Tensor value = std::move(elements_.Touch(size_));
  elements_.Truncate(size_);
  return value;
}

absl::Status TensorList::CheckFits(DType dtype, const Shape& shape) const {
  if (dtype != dtype_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a list of ", DTypeName(dtype_), " tensors cannot hold one of ", DTypeName(dtype)));
  }
  if (element_shape_.IsCompatibleWith(shape)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("an element of shape ", shape.ToString(),
                                                 " does not fit a list whose elements have shape ",
                                                 element_shape_.ToString()));
}

absl::StatusOr<const TensorList*> ListInput(KernelContext& ctx, int i, DType dtype) {
  const Tensor& handle = ctx.input(i);
  const Variant* value = handle.rank() == 0 ? &handle.flat<Variant>()[0] : nullptr;
  const auto* list = value != nullptr ? dynamic_cast<const TensorList*>(value->get()) : nullptr;
  if (list == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", i, " must be a tensor list, not ",
                     value != nullptr && *value != nullptr ? (*value)->DebugString() : handle.ToString()));
  }
  if (dtype == DType::kInvalid || dtype == list->dtype()) return list;
  return absl::InvalidArgumentError(
      absl::StrCat("input ", i, " must be a list of ", DTypeName(dtype), ", not a ", list->DebugString()));
}

absl::StatusOr<OwnedList> TakeList(KernelContext& ctx, int i, DType dtype) {
  THALWEG_ASSIGN_OR_RETURN(const TensorList* list, ListInput(ctx, i, dtype));
  OwnedList owned;
  owned.handle = ctx.TakeInput(i);
  if (owned.handle.OwnsBufferAlone() && owned.handle.flat<Variant>()[0].use_count() == 1) {
    // What former holders read happened before they let go.
    std::atomic_thread_fence(std::memory_order_acquire);
    owned.list = const_cast<TensorList*>(list);  // made by NewList, as an object that may be changed
    return owned;
  }
  return NewList(ctx, *list);
}

absl::StatusOr<OwnedList> NewList(KernelContext& ctx, TensorList list) {
  OwnedList owned;
  THALWEG_ASSIGN_OR_RETURN(owned.handle, Tensor::Allocate(DType::kVariant, Shape(), ctx.host_allocator(), ctx.node().id));
  auto shared = std::make_shared<TensorList>(std::move(list));
  owned.list = shared.get();
  owned.handle.mutable_flat<Variant>()[0] = std::move(shared);
  return owned;
}

absl::StatusOr<PartialShape> ElementShapeInput(KernelContext& ctx, int i) {
  const Tensor& shape = ctx.input(i);
  if (shape.rank() == 0) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t value, IntScalarArg(shape, "element_shape"));
    if (value == -1) return PartialShape();
    return absl::InvalidArgumentError(
        absl::StrCat("a scalar element_shape can only be -1, for an unknown shape, not ", value));
  }
  THALWEG_ASSIGN_OR_RETURN(const Dims dims, IntVectorArg(shape, "element_shape"));
  return PartialShape::Make(dims);
}

PartialShape KnownElementShape(const ShapeContext& c, int i) {
  if (c.input(i).rank() != 1) return PartialShape();
  absl::StatusOr<PartialShape> shape = c.input_as_shape(i);
  return shape.ok() ? *std::move(shape) : PartialShape();
}

absl::StatusOr<PartialShape> MergedWithElements(const TensorList& list, PartialShape shape) {
  absl::Status status;
  list.ForEachSet([&](int64_t, const Tensor& element) {
    if (!status.ok()) return;
    absl::StatusOr<PartialShape> merged = ShapeContext::Merge(shape, PartialShape::Known(element.shape()));
    if (merged.ok()) shape = *std::move(merged);
    else status = merged.status();
  });
  if (!status.ok()) return status;
  return shape;
}

}  // namespace thalweg
