// TensorArray: the resource behind the TensorArray ops, an array of tensors that loops write and read element by element.
//
// Each element is written once and, unless told otherwise, read once: reading frees it. A gradient array instead adds up
// what is written to one element. An array belongs to the handles that mean it (A74): when a step has dropped its values,
// the array is gone; nothing of it outlives the step but what the caller fetched.
//
// Threading: every method locks; none waits for anything. Tensors are shared, never copied; an element is changed only by
// putting another tensor in its place, so what was read stays as it was.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/ops/common/chunked_vector.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

struct TensorArrayOptions {
  std::string name;
  DType dtype = DType::kInvalid;
  int64_t size = 0;
  PartialShape element_shape;
  bool dynamic_size = false;             // writing beyond the end makes the array longer
  bool clear_after_read = true;
  bool identical_element_shapes = false; // the first write fixes what is open in element_shape
};

class TensorArray : public Resource {
 public:
  static constexpr const char* kTypeName = "TensorArray";

  explicit TensorArray(TensorArrayOptions options) : options_(std::move(options)) {}

  const std::string& name() const { return options_.name; }
  DType dtype() const { return options_.dtype; }
  std::string DebugString() const override;

  // Every operation on a closed array is InvalidArgument.
  absl::StatusOr<int64_t> Size() const;

  // InvalidArgument if the index is out of range, the value does not fit, or the element was written or read before.
  absl::Status Write(KernelContext& ctx, int64_t index, Tensor value);
  // The element; zeros where nothing was written and the shape is known (L8). InvalidArgument if the index is out of range,
  // the element was freed by an earlier read, or there is nothing to read.
  absl::StatusOr<Tensor> Read(KernelContext& ctx, int64_t index);

  // States more about every element's shape. InvalidArgument if that contradicts what is known.
  absl::Status RefineElementShape(const PartialShape& shape);
  // Makes room for `size` elements: longer if the size is dynamic, otherwise the size must be that already.
  absl::Status ResizeTo(int64_t size);

  // The array that collects gradients of this one under the name `source`, made when first asked for. From then on this
  // array cannot grow. InvalidArgument for the gradient of a gradient.
  absl::StatusOr<std::shared_ptr<TensorArray>> Gradient(const std::string& source);

  // Frees the elements.
  void Close();

 private:
  enum ElementState : uint8_t { kWritten = 1, kRead = 2, kFreed = 4 };
  struct Element {
    Tensor value;  // without a buffer, only its shape: once freed, and in gradient arrays before the first write
    uint8_t state = 0;
  };

  absl::Status CheckOpen() const;
  absl::Status CheckWritable(int64_t index, const Tensor& value, const Element& element) const;
  absl::Status Store(KernelContext& ctx, int64_t index, Tensor value, Element& element);
  // The shape of an element that was not written to. NotFound if nothing says it.
  absl::StatusOr<Shape> ShapeOfUnwritten(const Element* element) const;

  mutable std::mutex mutex_;
  TensorArrayOptions options_;                 // guarded by mutex_, but for name and dtype, which never change
  bool closed_ = false;                        // guarded by mutex_
  ChunkedVector<Element> elements_;            // guarded by mutex_
  absl::flat_hash_map<std::string, std::shared_ptr<TensorArray>> gradients_;  // guarded by mutex_
  bool is_gradient_ = false;                   // set before anybody else sees the array
};

// The array that input `i` of a kernel means. InvalidArgument if that is no TensorArray, or one of another type than
// `dtype` (kInvalid: any type).
absl::StatusOr<std::shared_ptr<TensorArray>> FindTensorArray(KernelContext& ctx, int i, DType dtype = DType::kInvalid);
// A scalar handle of `array` that keeps it alive.
absl::StatusOr<Tensor> TensorArrayHandle(KernelContext& ctx, std::shared_ptr<TensorArray> array);

}  // namespace thalweg
