// Reference-counted storage behind tensors.
//
// A Buffer is shared by any number of Tensors (aliases, reshapes, slices). Its count may be changed from any thread;
// its bytes may be written only by a holder that is alone (IsUnique) or by whoever is producing the value.
// BufferRef owns one count. Buffers are made by allocators (devices/allocator.h) or wrap memory of the user.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "thalweg/proto/export.h"

namespace thalweg {

// Where the bytes are. Device memory may not be touched by host code: dereferencing it faults.
enum class MemoryKind : uint8_t { kHost, kDevice };

class THALWEG_EXPORT Buffer {
 public:
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  MemoryKind memory() const { return memory_; }
  // The plan's id of the node that allocated this buffer, or -1 (feeds, wrapped memory, literals).
  int32_t node_id() const { return node_id_; }
  // False for memory that must not be written in place even by its only holder (wrapped read-only user memory, maps).
  bool writable() const { return writable_; }

  void Ref() { count_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() {
    if (count_.load(std::memory_order_acquire) == 1 || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  bool IsUnique() const { return count_.load(std::memory_order_acquire) == 1; }

 protected:
  Buffer(void* data, size_t bytes, MemoryKind memory, int32_t node_id, bool writable = true)
      : data_(data), bytes_(bytes), node_id_(node_id), memory_(memory), writable_(writable) {}
  virtual ~Buffer() = default;

  void* data_;
  size_t bytes_;

 private:
  std::atomic<int32_t> count_{1};
  int32_t node_id_;
  MemoryKind memory_;
  bool writable_;
};

class BufferRef {
 public:
  BufferRef() = default;
  // Takes over the count that `buffer` was created with.
  explicit BufferRef(Buffer* buffer) : buffer_(buffer) {}
  BufferRef(const BufferRef& o) : buffer_(o.buffer_) {
    if (buffer_) buffer_->Ref();
  }
  BufferRef(BufferRef&& o) noexcept : buffer_(std::exchange(o.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(buffer_, o.buffer_);
    return *this;
  }
  ~BufferRef() {
    if (buffer_) buffer_->Unref();
  }
  Buffer* get() const { return buffer_; }
  Buffer* operator->() const { return buffer_; }
  explicit operator bool() const { return buffer_ != nullptr; }

 private:
  Buffer* buffer_ = nullptr;
};

}  // namespace thalweg
