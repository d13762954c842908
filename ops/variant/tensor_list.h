// TensorList: the value behind the TensorList ops, a list of tensors that is carried in a variant.
//
// A list is a value: ops give a new list and leave the old one as it was. Whoever takes the last hold of a list may change
// it in place (TakeList), so a loop that sets or appends elements does so in constant time.
//
// Threading: a list that others may hold is never changed, so it needs no lock.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/chunked_vector.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

class TensorList : public VariantValue {
 public:
  TensorList(DType dtype, PartialShape element_shape, int64_t size = 0)
      : dtype_(dtype), element_shape_(std::move(element_shape)), size_(size) {}

  absl::string_view type_name() const override { return "TensorList"; }
  std::string DebugString() const override;

  DType dtype() const { return dtype_; }
  const PartialShape& element_shape() const { return element_shape_; }
  int64_t size() const { return size_; }
  // The largest size that appending may lead to; negative: no limit.
  int64_t max_size() const { return max_size_; }
  void set_max_size(int64_t max_size) { max_size_ = max_size; }

  // Element `index` in [0, size()); uninitialised if it was never set.
  const Tensor& element(int64_t index) const;
  // Calls fn(index, tensor) for the elements that are set, in order.
  template <typename Fn>
  void ForEachSet(Fn fn) const {
    elements_.ForEach([&](int64_t index, const Tensor& element) {
      if (element.initialized()) fn(index, element);
    });
  }

  // ResourceExhausted if that many elements cannot be kept. InvalidArgument for a negative size.
  absl::Status Resize(int64_t size);
  // Requires index in [0, size()).
  void Set(int64_t index, Tensor value) { elements_.Touch(index) = std::move(value); }
  // Removes the last element. Requires size() > 0.
  Tensor PopBack();

  // InvalidArgument unless a tensor of this type and shape may be an element.
  absl::Status CheckFits(DType dtype, const Shape& shape) const;

 private:
  const DType dtype_;
  const PartialShape element_shape_;
  int64_t size_;
  int64_t max_size_ = -1;
  ChunkedVector<Tensor> elements_;  // those that were never set need not be there
};

// The list in input i. InvalidArgument if it is none, or its elements are not of `dtype` (kInvalid: any type).
absl::StatusOr<const TensorList*> ListInput(KernelContext& ctx, int i, DType dtype = DType::kInvalid);

// A list that may be changed, and the scalar that carries it.
struct OwnedList {
  Tensor handle;
  TensorList* list = nullptr;
};
// The list in input i to be changed: itself if nobody else holds it, otherwise a copy.
absl::StatusOr<OwnedList> TakeList(KernelContext& ctx, int i, DType dtype = DType::kInvalid);
// A scalar that carries a new list.
absl::StatusOr<OwnedList> NewList(KernelContext& ctx, TensorList list);

// A shape given as input i: a vector with -1 for what is open, or the scalar -1 for an unknown rank.
absl::StatusOr<PartialShape> ElementShapeInput(KernelContext& ctx, int i);
// For shape functions: the same as far as it is known.
PartialShape KnownElementShape(const ShapeContext& c, int i);

// `shape` made as complete as the elements of the list allow (L8). InvalidArgument if it contradicts them.
absl::StatusOr<PartialShape> MergedWithElements(const TensorList& list, PartialShape shape);

}  // namespace thalweg
