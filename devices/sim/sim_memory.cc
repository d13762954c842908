#include "thalweg/devices/sim/sim_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

constexpr int64_t kLargestCapacity = int64_t{1} << 46;

// Pages of free blocks of at least this many bytes go back to the system.
constexpr int64_t kReturnBytes = int64_t{1} << 20;

int64_t RoundUp(int64_t bytes, int64_t unit) { return (bytes + unit - 1) / unit * unit; }

// A block's size in the arena; an empty one still has an address of its own.
int64_t BlockBytes(int64_t bytes) { return std::max(SimMemory::kAlignment, RoundUp(bytes, SimMemory::kAlignment)); }

absl::Status SystemRefused(absl::string_view call, int64_t capacity) {
  return absl::ResourceExhaustedError(
      absl::StrCat("cannot reserve ", capacity, " bytes for a simulated device: ", call, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<SimMemory>> SimMemory::Make(int64_t capacity) {
  if (capacity <= 0 || capacity > kLargestCapacity) {
    return absl::InvalidArgumentError(
        absl::StrCat("the memory of a simulated device must be 1 to ", kLargestCapacity, " bytes, not ", capacity));
  }
  capacity = RoundUp(capacity, sysconf(_SC_PAGESIZE));
  const int file = memfd_create("thalweg-sim", MFD_CLOEXEC);
  if (file < 0) return SystemRefused("memfd_create", capacity);
  const absl::Cleanup close_file = [file] { close(file); };  // the mappings keep it alive
  if (ftruncate(file, capacity) != 0) return SystemRefused("ftruncate", capacity);
  void* device_base = mmap(nullptr, capacity, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (device_base == MAP_FAILED) return SystemRefused("mmap", capacity);
  void* alias_base = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (alias_base == MAP_FAILED) {
    const absl::Status status = SystemRefused("mmap", capacity);
    munmap(device_base, capacity);
    return status;
  }
  return std::shared_ptr<SimMemory>(
      new SimMemory(static_cast<char*>(device_base), static_cast<char*>(alias_base), capacity));
}

SimMemory::SimMemory(char* device_base, char* alias_base, int64_t capacity)
    : device_base_(device_base), alias_base_(alias_base), capacity_(capacity) {
  AddFreeRange(0, capacity);
}

SimMemory::~SimMemory() {
  munmap(device_base_, capacity_);
  munmap(alias_base_, capacity_);
}

void* SimMemory::Allocate(int64_t bytes) {
  if (bytes > capacity_) return nullptr;
  const int64_t wanted = BlockBytes(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto best = free_by_size_.lower_bound({wanted, 0});  // the shortest range that is long enough
  if (best == free_by_size_.end()) return nullptr;
  const auto [range_bytes, offset] = *best;
  RemoveFreeRange(offset, range_bytes);
  if (range_bytes > wanted) AddFreeRange(offset + wanted, range_bytes - wanted);
  Poison(offset, wanted);
  return device_base_ + offset;
}

void SimMemory::Free(void* block, int64_t bytes) {
  Offset offset = static_cast<char*>(block) - device_base_;
  int64_t range_bytes = BlockBytes(bytes);
  if (range_bytes < kReturnBytes || !ReturnPages(offset, range_bytes)) Poison(offset, range_bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto next = free_by_offset_.lower_bound(offset);
  if (next != free_by_offset_.begin()) {
    const auto [previous_offset, previous_bytes] = *std::prev(next);
    if (previous_offset + previous_bytes == offset) {
      RemoveFreeRange(previous_offset, previous_bytes);
      offset = previous_offset;
      range_bytes += previous_bytes;
    }
  }
  if (next != free_by_offset_.end() && offset + range_bytes == next->first) {
    const auto [next_offset, next_bytes] = *next;
    RemoveFreeRange(next_offset, next_bytes);
    range_bytes += next_bytes;
  }
  AddFreeRange(offset, range_bytes);
}

bool SimMemory::Contains(const void* address) const {
  const auto* byte = static_cast<const char*>(address);
  return byte >= device_base_ && byte <= device_base_ + capacity_;
}

void* SimMemory::Alias(const void* address) const {
  return alias_base_ + (static_cast<const char*>(address) - device_base_);
}

int64_t SimMemory::LargestFreeRange() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
}

void SimMemory::AddFreeRange(Offset offset, int64_t bytes) {
  free_by_offset_.emplace(offset, bytes);
  free_by_size_.emplace(bytes, offset);
}

void SimMemory::RemoveFreeRange(Offset offset, int64_t bytes) {
  free_by_offset_.erase(offset);
  free_by_size_.erase({bytes, offset});
}

bool SimMemory::ReturnPages(Offset offset, int64_t bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const Offset first = RoundUp(offset, page), last = (offset + bytes) / page * page;
  if (madvise(alias_base_ + first, last - first, MADV_REMOVE) != 0) return false;
  Poison(offset, first - offset);
  Poison(last, offset + bytes - last);
  return true;
}

void SimMemory::Poison(Offset offset, int64_t bytes) {
  std::memset(alias_base_ + offset, kPoison, static_cast<size_t>(bytes));
}

}  // namespace thalweg
