// Tensor: dtype, shape, and a share of a buffer. The value type that flows along the edges of a graph.
//
// Threading: a Tensor object is not locked; distinct Tensors may share a buffer and be used from several threads, as
// long as nobody writes a shared buffer. Copying shares the buffer. A default-constructed Tensor is uninitialised.
// Layout: dense, row-major; elements of dtype string, resource and variant are C++ objects (std::string,
// ResourceHandle, Variant) in host memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/devices/allocator.h"
#include "thalweg/devices/buffer.h"
#include "thalweg/devices/object.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/export.h"
#include "thalweg/proto/shape.h"
#include "thalweg/proto/tensor_literal.h"

namespace thalweg {

class THALWEG_EXPORT Tensor {
 public:
  Tensor() = default;

  // Uninitialised elements (objects default-constructed). InvalidArgument for an invalid dtype, ResourceExhausted from
  // the allocator. `allocator` must outlive the tensor; objects are always placed in host memory.
  static absl::StatusOr<Tensor> Allocate(DType dtype, Shape shape, Allocator& allocator = DefaultHostAllocator(),
                                         int32_t node_id = -1);

  // Memory of the caller, not copied: `data` holds shape.num_elements() elements and stays valid until `deleter` is called,
  // exactly once, on whichever thread drops the last tensor that shares it. Only memory misaligned for its element type is
  // copied (DefaultHostAllocator counts that), and the deleter called at once. `writable` allows kernels to compute in
  // place when they are the last user. On an error (InvalidArgument: a bad type, null) the deleter is not called.
  static absl::StatusOr<Tensor> Wrap(void* data, DType dtype, Shape shape, std::function<void()> deleter,
                                     bool writable = false);

  // A tensor of a literal's value, in host memory. Large plain contents are shared with the literal, not copied.
  // InvalidArgument if the literal has a fault.
  static absl::StatusOr<Tensor> FromLiteral(const TensorLiteralPtr& literal,
                                            Allocator& allocator = DefaultHostAllocator());
  // The reverse; shares the buffer. Unimplemented for resources and variants.
  absl::StatusOr<TensorLiteralPtr> ToLiteral() const;

  // Shorthand for tests and small programs: values in row-major order. Requires values.size() == shape.num_elements().
  template <typename T>
  static absl::StatusOr<Tensor> Of(std::vector<T> values, Shape shape);
  template <typename T>
  static absl::StatusOr<Tensor> Scalar(T value) {
    return Of<T>(std::vector<T>{std::move(value)}, Shape());
  }

  bool initialized() const { return dtype_ != DType::kInvalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t dim(int i) const { return shape_.dim(i); }
  int64_t num_elements() const { return shape_.num_elements(); }
  // Bytes of the elements (for strings: of the std::string objects plus their characters).
  int64_t bytes() const;
  MemoryKind memory() const { return buffer_ ? buffer_->memory() : MemoryKind::kHost; }

  // Untyped access. The pointer may be null when there are no elements.
  const void* raw() const { return data_; }
  void* mutable_raw() { return data_; }

  // All elements in row-major order. Requires dtype() == DTypeOf<T>; otherwise the span is empty, never a wrong view.
  template <typename T>
  absl::Span<const T> flat() const {
    if (dtype_ != DTypeOf<T>::value) return {};
    // Spelt out: braces would make a Span<const bool> of a list of two bools.
    return absl::Span<const T>(static_cast<const T*>(data_), static_cast<size_t>(shape_.num_elements()));
  }
  template <typename T>
  absl::Span<T> mutable_flat() {
    if (dtype_ != DTypeOf<T>::value) return {};
    return absl::Span<T>(static_cast<T*>(data_), static_cast<size_t>(shape_.num_elements()));
  }
  // The element of a scalar (rank 0). InvalidArgument for another rank or dtype.
  template <typename T>
  absl::StatusOr<T> scalar() const;

  // The same elements under another shape. InvalidArgument if the element counts differ.
  absl::StatusOr<Tensor> Reshaped(Shape shape) const;
  // Requires equal element counts and dtype sizes; for code that has just computed both.
  Tensor AliasedAs(DType dtype, Shape shape) const;
  // Rows [begin, end) along dimension 0, sharing the buffer. Requires rank >= 1 and 0 <= begin <= end <= dim(0).
  Tensor Rows(int64_t begin, int64_t end) const;

  // True if this tensor is the buffer's only holder, it covers the buffer's start, and it may be written in place.
  bool OwnsBufferAlone() const { return buffer_ && buffer_->IsUnique() && buffer_->writable(); }
  bool SharesBufferWith(const Tensor& other) const { return buffer_ && buffer_.get() == other.buffer_.get(); }
  const BufferRef& buffer() const { return buffer_; }

  // A view of existing storage; for device and adapter code. `data` must lie inside `buffer`.
  static Tensor FromBuffer(DType dtype, Shape shape, BufferRef buffer, void* data);

  // "float32[2,3] {1, 2, 3, ...}" with at most `limit` elements; device memory prints without elements.
  std::string ToString(int64_t limit = 10) const;

 private:
  DType dtype_ = DType::kInvalid;
  void* data_ = nullptr;
  BufferRef buffer_;
  Shape shape_;
};

THALWEG_EXPORT absl::Status ScalarAccessError(const Tensor& t, DType wanted);

template <typename T>
absl::StatusOr<T> Tensor::scalar() const {
  if (dtype_ != DTypeOf<T>::value || shape_.rank() != 0) return ScalarAccessError(*this, DTypeOf<T>::value);
  return *static_cast<const T*>(data_);
}

template <typename T>
absl::StatusOr<Tensor> Tensor::Of(std::vector<T> values, Shape shape) {
  if (static_cast<int64_t>(values.size()) != shape.num_elements()) {
    return absl::InvalidArgumentError("Tensor::Of: the number of values differs from the shape's element count");
  }
  absl::StatusOr<Tensor> t = Allocate(DTypeOf<T>::value, std::move(shape));
  if (!t.ok()) return t;
  T* out = static_cast<T*>(t->mutable_raw());
  for (size_t i = 0; i < values.size(); ++i) out[i] = std::move(values[i]);
  return t;
}

}  // namespace thalweg
