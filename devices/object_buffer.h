// Storage of tensors whose elements are C++ objects (strings, resource handles, variants).
//
// The memory comes from a host allocator, which accounts for the objects themselves. The characters of long strings are
// charged afterwards (devices/text_memory.h); what handles and variants point to accounts for itself.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "thalweg/devices/allocator.h"
#include "thalweg/devices/buffer.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {

template <typename T>
class ObjectBuffer final : public Buffer {
 public:
  // `count` default-constructed objects. Requires a host allocator and count * sizeof(T) <= INT64_MAX.
  static absl::StatusOr<BufferRef> Make(int64_t count, Allocator& host_allocator, int32_t node_id) {
    THALWEG_ASSIGN_OR_RETURN(BufferRef storage,
                             host_allocator.Allocate(count * static_cast<int64_t>(sizeof(T)), node_id));
    std::uninitialized_value_construct_n(static_cast<T*>(storage->data()), count);
    return BufferRef(new ObjectBuffer(std::move(storage), count, node_id));
  }

  // What else lives as long as the objects: the charge for their text.
  const BufferRef& charge() const { return charge_; }
  void set_charge(BufferRef charge) { charge_ = std::move(charge); }

 private:
  ObjectBuffer(BufferRef storage, int64_t count, int32_t node_id)
      : Buffer(storage->data(), count * sizeof(T), MemoryKind::kHost, node_id),
        storage_(std::move(storage)),
        count_(count) {}
  ~ObjectBuffer() override { std::destroy_n(static_cast<T*>(data()), count_); }

  BufferRef storage_;
  BufferRef charge_;
  int64_t count_;
};

}  // namespace thalweg
