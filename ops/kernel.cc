#include "thalweg/ops/kernel.h"

#include "absl/strings/str_cat.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {
namespace {

// The allocator for memory of `kind` on the kernel's device. Objects (strings, handles) are always on the host.
Allocator& AllocatorFor(const KernelNode& node, StepServices& step, MemoryKind kind, DType dtype) {
  if (kind == MemoryKind::kHost || !IsPlainMemory(dtype)) {
    return node.device->memory() == MemoryKind::kHost ? node.device->allocator() : step.host_allocator();
  }
  return node.device->allocator();
}

// Device memory under the address through which code on the device may touch it.
Tensor AsKernelSees(const Device& device, Tensor tensor) {
  if (tensor.memory() == MemoryKind::kHost) return tensor;
  void* data = device.KernelPointer(tensor.mutable_raw());
  return Tensor::FromBuffer(tensor.dtype(), tensor.shape(), tensor.buffer(), data);
}

// What an earlier execution has left in the place of a result: executors keep small ones that every iteration makes anew.
bool IsFreeForResult(const Tensor& left, DType dtype, const Shape& shape) {
  return left.dtype() == dtype && IsPlainMemory(dtype) && left.OwnsBufferAlone() && left.memory() == MemoryKind::kHost &&
         left.raw() == left.buffer()->data() && left.shape() == shape;
}

}  // namespace

KernelSignature KernelSignature::OnHost(absl::Span<const DType> inputs, absl::Span<const DType> outputs) {
  KernelSignature signature;
  signature.input_types.assign(inputs.begin(), inputs.end());
  signature.output_types.assign(outputs.begin(), outputs.end());
  signature.input_memory.assign(inputs.size(), MemoryKind::kHost);
  signature.output_memory.assign(outputs.size(), MemoryKind::kHost);
  return signature;
}

absl::StatusOr<Tensor*> KernelContext::AllocateOutput(int i, const Shape& shape) {
  const DType dtype = output_dtype(i);
  if (IsFreeForResult(outputs_[i].tensor, dtype, shape)) return &outputs_[i].tensor;
  absl::StatusOr<Tensor> tensor =
      Tensor::Allocate(dtype, shape, AllocatorFor(*node_, *step_, node_->output_memory()[i], dtype), node_->id);
  if (!tensor.ok()) return tensor.status();
  outputs_[i].tensor = AsKernelSees(*node_->device, *std::move(tensor));
  return &outputs_[i].tensor;
}

absl::StatusOr<Tensor*> KernelContext::ForwardOrAllocateOutput(std::initializer_list<int> candidates, int output, const Shape& shape) {
  const DType dtype = output_dtype(output);
  for (int i : candidates) {
    Value& value = slots_[input_slots_[i]];
    if (!last_use_[i] || value.ref != nullptr) continue;
    const Tensor& in = value.tensor;
    if (in.dtype() != dtype || in.num_elements() != shape.num_elements() || node_->input_memory()[i] != node_->output_memory()[output] ||
        !in.OwnsBufferAlone()) {
      continue;
    }
    // The output takes the buffer over; the kernel still reads the input while it writes in place.
    Tensor& out = outputs_[output].tensor;
    if (in.memory() != MemoryKind::kHost) {
      out = in.AliasedAs(dtype, shape);
      return &out;
    }
    const bool same_shape = in.shape() == shape;
    Tensor borrowed = Tensor::FromBuffer(dtype, in.shape(), BufferRef(), value.tensor.mutable_raw());
    out = same_shape ? std::move(value.tensor) : in.AliasedAs(dtype, shape);
    value.tensor = std::move(borrowed);
    return &out;
  }
  return AllocateOutput(output, shape);
}

Tensor KernelContext::TakeInput(int i) {
  Value& value = slots_[input_slots_[i]];
  return last_use_[i] && value.ref == nullptr ? std::move(value.tensor) : value.tensor;
}

absl::StatusOr<Tensor> KernelContext::AllocateTemp(DType dtype, const Shape& shape) {
  absl::StatusOr<Tensor> tensor =
      Tensor::Allocate(dtype, shape, AllocatorFor(*node_, *step_, node_->device->memory(), dtype), node_->id);
  if (!tensor.ok()) return tensor;
  return AsKernelSees(*node_->device, *std::move(tensor));
}

Allocator& KernelContext::host_allocator() const { return step_->host_allocator(); }

void KernelContext::ParallelFor(int64_t total, double nanos_per_item, absl::FunctionRef<void(int64_t, int64_t)> fn) {
  step_->ParallelFor(total, nanos_per_item, fn);
}

}  // namespace thalweg
