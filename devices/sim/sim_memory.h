// The memory of a simulated accelerator: a range of addresses that faults when the host touches it.
//
// One anonymous file is mapped twice: once without any access right, which gives the device addresses that tensors
// carry, and once for reading and writing, the alias through which only the device's own code goes (Alias). Host code
// that forgets to copy dies at the faulty instruction, as it would on real hardware, and is not excused by luck.
// Pages are taken from the system when first written. What is handed out is filled with kPoison, and so is what was
// freed, so that reading either gives conspicuous garbage; but pages of large free blocks go back to the system, and read as
// zeros.
//
// Threading: all methods are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/statusor.h"

namespace thalweg {

class SimMemory {
 public:
  static constexpr uint8_t kPoison = 0xDE;
  // Blocks start at multiples of this many bytes.
  static constexpr int64_t kAlignment = 256;

  // Reserves `capacity` bytes of addresses, rounded up to whole pages. InvalidArgument if capacity is not positive,
  // ResourceExhausted if the system refuses.
  static absl::StatusOr<std::shared_ptr<SimMemory>> Make(int64_t capacity);
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;
  ~SimMemory();

  // The device address of a block of at least `bytes` bytes, or null if no free range is long enough.
  // Requires bytes >= 0.
  void* Allocate(int64_t bytes);
  // Requires a block of Allocate, with the same `bytes`.
  void Free(void* block, int64_t bytes);

  // True if `address` lies in the device range (its end included: an empty view may stand there).
  bool Contains(const void* address) const;
  // The readable and writable address of the same byte. Requires Contains(address).
  void* Alias(const void* address) const;

  int64_t capacity() const { return capacity_; }
  int64_t LargestFreeRange() const;

 private:
  using Offset = int64_t;

  SimMemory(char* device_base, char* alias_base, int64_t capacity);
  void AddFreeRange(Offset offset, int64_t bytes);
  void RemoveFreeRange(Offset offset, int64_t bytes);
  // False if the system does not take them.
  bool ReturnPages(Offset offset, int64_t bytes);
  void Poison(Offset offset, int64_t bytes);

  char* const device_base_;
  char* const alias_base_;
  const int64_t capacity_;

  // Free ranges, never adjacent to each other, by offset and by (size, offset). Kept in host memory: device memory
  // holds nothing but values. All below guarded by mutex_.
  mutable std::mutex mutex_;
  std::map<Offset, int64_t> free_by_offset_;
  std::set<std::pair<int64_t, Offset>> free_by_size_;
};

}  // namespace thalweg
