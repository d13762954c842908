// Memory of a device: allocation with a byte limit, accounting, and the node behind every allocation.
//
// Threading: all methods are thread-safe. Ownership: an allocator must outlive the buffers it made; sessions see to it.
// Errors: ResourceExhausted names the request, what is in use, and the limit; nothing ever throws or aborts.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/buffer.h"
#include "thalweg/devices/memory_log.h"
#include "thalweg/proto/export.h"

namespace thalweg {

// Every block starts at a multiple of this many bytes.
inline constexpr size_t kBufferAlignment = 64;

// A byte budget shared by the allocators of one session.
//
// What is in use is kept in one account per holder, each on a cache line of its own, and summed when it is asked for:
// a session has few allocators but many allocations, and an atomic addition is the dearest part of a small one.
class THALWEG_EXPORT MemoryBudget {
 public:
  class Account;

  // limit_bytes <= 0 means no limit.
  explicit MemoryBudget(int64_t limit_bytes);
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;
  ~MemoryBudget();

  // False, with nothing reserved, if the limit would be passed.
  bool Reserve(int64_t bytes) { return Reserve(bytes, *own_); }
  // Requires that so much was reserved before.
  void Release(int64_t bytes);

  // For allocators. An account lives as long as the budget and belongs to one holder from OpenAccount until the holder
  // has closed it and all its bytes are released; the call that makes both true returns true, and is the last one that
  // may touch what the holder keeps for its buffers.
  Account& OpenAccount();
  bool Reserve(int64_t bytes, Account& account);
  [[nodiscard]] bool Release(int64_t bytes, Account& account);
  [[nodiscard]] bool CloseAccount(Account& account);
  static int64_t InUse(const Account& account);
  static int64_t Peak(const Account& account);

  int64_t limit() const { return limit_; }
  int64_t in_use() const;
  int64_t peak() const { return peak_.load(std::memory_order_relaxed); }
  void ResetPeak() { peak_.store(in_use(), std::memory_order_relaxed); }

 private:
  const int64_t limit_;
  std::atomic<int64_t> peak_{0};
  std::atomic<Account*> accounts_{nullptr};  // a list that only grows
  Account* const own_;                       // of Reserve and Release without an account
};

struct AllocatorStats {
  int64_t bytes_in_use = 0;
  int64_t peak_bytes = 0;
  int64_t allocations = 0;  // since creation
};

class THALWEG_EXPORT Allocator {
 public:
  virtual ~Allocator() = default;
  virtual absl::string_view name() const = 0;
  virtual MemoryKind memory() const = 0;
  // A buffer of at least `bytes` bytes (0 is fine) with unspecified contents. `node_id` is remembered in the buffer.
  virtual absl::StatusOr<BufferRef> Allocate(int64_t bytes, int32_t node_id) = 0;
  virtual AllocatorStats stats() const = 0;
  // What comes and goes here while somebody has started the log.
  virtual MemoryLog& memory_log() = 0;
  // Gives cached free blocks back to the system.
  virtual void Trim() {}
};

// Host memory with a size-class cache, charged to `budget` (which must not be null).
THALWEG_EXPORT std::shared_ptr<Allocator> MakeHostAllocator(std::string name, std::shared_ptr<MemoryBudget> budget);

// The process-wide host allocator without a limit, for tensors made outside any session (feeds, tests).
THALWEG_EXPORT Allocator& DefaultHostAllocator();

}  // namespace thalweg
