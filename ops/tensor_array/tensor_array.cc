#include "thalweg/ops/tensor_array/tensor_array.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/combine.h"
#include "thalweg/ops/common/rows.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

absl::Status OutOfRange(const TensorArrayOptions& array, const char* action, int64_t index) {
  return absl::InvalidArgumentError(absl::StrCat("TensorArray '", array.name, "': cannot ", action, " index ", index,
                                                 " of ", array.size, " elements",
                                                 array.dynamic_size ? "" : "; its size is fixed"));
}

// Keeps the shape and lets go of the elements.
Tensor ShapeOnly(const Tensor& value) {
  return Tensor::FromBuffer(value.dtype(), value.shape(), BufferRef(), nullptr);
}

}  // namespace

std::string TensorArray::DebugString() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return absl::StrCat("TensorArray '", options_.name, "' of ", options_.size, " ", DTypeName(options_.dtype),
                      options_.element_shape.ToString(), closed_ ? " (closed)" : "");
}

absl::Status TensorArray::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("TensorArray '", options_.name, "' has been closed"));
}

absl::StatusOr<int64_t> TensorArray::Size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  THALWEG_RETURN_IF_ERROR(CheckOpen());
  return options_.size;
}

absl::Status TensorArray::CheckWritable(int64_t index, const Tensor& value, const Element& element) const {
  const auto refused = [&](const std::string& why) {
    return absl::InvalidArgumentError(
        absl::StrCat("TensorArray '", options_.name, "': cannot write to index ", index, " because ", why));
  };
  if (!options_.element_shape.IsCompatibleWith(value.shape())) {
    return refused(absl::StrCat("the value's shape is ", value.shape().ToString(), ", not ",
                                options_.element_shape.ToString(), " as of all elements"));
  }
  if (element.state & kRead) return refused("it has been read already");
  if ((element.state & kWritten) && !is_gradient_) return refused("it has been written to already");
  return absl::OkStatus();
}

absl::Status TensorArray::Write(KernelContext& ctx, int64_t index, Tensor value) {
  std::lock_guard<std::mutex> lock(mutex_);
  THALWEG_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || index > std::numeric_limits<int32_t>::max() - 1 || (index >= options_.size && !options_.dynamic_size)) {
    return OutOfRange(options_, "write to", index);
  }
  static const Element kUntouched;
  const Element* existing = elements_.Find(index);
  THALWEG_RETURN_IF_ERROR(CheckWritable(index, value, existing != nullptr ? *existing : kUntouched));
  if (options_.identical_element_shapes) options_.element_shape = PartialShape::Known(value.shape());
  options_.size = std::max(options_.size, index + 1);
  return Store(ctx, index, std::move(value), elements_.Touch(index));
}

absl::Status TensorArray::Store(KernelContext& ctx, int64_t index, Tensor value, Element& element) {
  // A gradient has the shape of the element that it belongs to.
  if (element.value.initialized() && element.value.shape() != value.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("TensorArray '", options_.name, "': a value of shape ",
                                                   value.shape().ToString(), " cannot be added to index ", index,
                                                   ", which has shape ", element.value.shape().ToString()));
  }
  if (element.state & kWritten) {
    THALWEG_ASSIGN_OR_RETURN(value, SumOfTensors(ctx, element.value, value));
  }
  element.value = std::move(value);
  element.state |= kWritten;
  return absl::OkStatus();
}

absl::StatusOr<Shape> TensorArray::ShapeOfUnwritten(const Element* element) const {
  if (element != nullptr && element->value.initialized()) return element->value.shape();
  if (options_.element_shape.IsFullyKnown()) return options_.element_shape.ToShape();
  return absl::NotFoundError("the shape is not known");
}

absl::StatusOr<Tensor> TensorArray::Read(KernelContext& ctx, int64_t index) {
  std::lock_guard<std::mutex> lock(mutex_);
  THALWEG_RETURN_IF_ERROR(CheckOpen());
  if (index < 0 || index >= options_.size) return OutOfRange(options_, "read", index);
  const Element* existing = elements_.Find(index);
  if (existing != nullptr && (existing->state & kFreed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("TensorArray '", options_.name, "': index ", index,
                     " cannot be read again, since reading it freed it (clear_after_read=false keeps it)"));
  }
  if (existing == nullptr || !(existing->state & kWritten)) {
    const absl::StatusOr<Shape> shape = ShapeOfUnwritten(existing);
    if (!shape.ok() || !IsPlainMemory(options_.dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "TensorArray '", options_.name, "': index ", index, " was not written to; it reads as zeros only if the shape of its ",
          "elements is known, and it is ", options_.element_shape.ToString(), " of ", DTypeName(options_.dtype)));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor zeros, ZeroTensor(ctx, options_.dtype, *shape));
    elements_.Touch(index) = {std::move(zeros), kWritten};
  }
  Element& element = elements_.Touch(index);
  Tensor value = element.value;
  element.state |= kRead;
  if (options_.clear_after_read) {
    element.value = ShapeOnly(value);
    element.state |= kFreed;
  }
  return value;
}

absl::Status TensorArray::RefineElementShape(const PartialShape& shape) {
  std::lock_guard<std::mutex> lock(mutex_);
  THALWEG_ASSIGN_OR_RETURN(options_.element_shape, ShapeContext::Merge(options_.element_shape, shape));
  return absl::OkStatus();
}

absl::Status TensorArray::ResizeTo(int64_t size) {
  std::lock_guard<std::mutex> lock(mutex_);
  THALWEG_RETURN_IF_ERROR(CheckOpen());
  if (options_.dynamic_size && size > options_.size && size <= std::numeric_limits<int32_t>::max()) options_.size = size;
  if (size == options_.size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("TensorArray '", options_.name, "' has ", options_.size,
                                                 " elements, but there are ", size, " values for it",
                                                 options_.dynamic_size ? "" : "; its size is fixed"));
}

absl::StatusOr<std::shared_ptr<TensorArray>> TensorArray::Gradient(const std::string& source) {
  std::lock_guard<std::mutex> lock(mutex_);
  THALWEG_RETURN_IF_ERROR(CheckOpen());
  if (is_gradient_) {
    return absl::InvalidArgumentError(
        absl::StrCat("TensorArray '", options_.name, "' holds gradients; gradients of these cannot be collected"));
  }
  options_.dynamic_size = false;
  std::shared_ptr<TensorArray>& gradient = gradients_[source];
  if (gradient == nullptr) {
    TensorArrayOptions options = options_;
    options.name = absl::StrCat(options_.name, "@", source);
    options.clear_after_read = true;
    gradient = std::make_shared<TensorArray>(std::move(options));
    gradient->is_gradient_ = true;
    elements_.ForEach([&](int64_t index, const Element& element) {
      if (element.value.initialized()) gradient->elements_.Touch(index).value = ShapeOnly(element.value);
    });
  }
  return gradient;
}

void TensorArray::Close() {
  ChunkedVector<Element> elements;  // freed after the lock is released
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  elements.swap(elements_);
  gradients_.clear();
}

absl::StatusOr<std::shared_ptr<TensorArray>> FindTensorArray(KernelContext& ctx, int i, DType dtype) {
  const Tensor& handle = ctx.input(i);
  if (handle.num_elements() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the handle of a TensorArray must be one element, not ", handle.shape().ToString()));
  }
  THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<TensorArray> array,
                           LookupResource<TensorArray>(ctx.step(), handle.flat<ResourceHandle>()[0]));
  if (dtype != DType::kInvalid && dtype != array->dtype()) {
    return absl::InvalidArgumentError(absl::StrCat("TensorArray '", array->name(), "' holds ", DTypeName(array->dtype()),
                                                   ", not ", DTypeName(dtype)));
  }
  return array;
}

absl::StatusOr<Tensor> TensorArrayHandle(KernelContext& ctx, std::shared_ptr<TensorArray> array) {
  THALWEG_ASSIGN_OR_RETURN(Tensor handle, Tensor::Allocate(DType::kResource, Shape(), ctx.host_allocator(), ctx.node().id));
  ResourceHandle& value = handle.mutable_flat<ResourceHandle>()[0];
  value.name = array->name();
  value.type_name = TensorArray::kTypeName;
  value.dtype = array->dtype();
  value.resource = std::move(array);
  return handle;
}

}  // namespace thalweg
