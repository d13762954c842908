#include "thalweg/devices/sim/sim_allocator.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

class SimBuffer final : public Buffer {
 public:
  SimBuffer(void* block, int64_t bytes, int32_t node_id, std::shared_ptr<SimMemory> memory,
            std::shared_ptr<MemoryBudget> usage, std::shared_ptr<MemoryBudget> session, std::shared_ptr<MemoryLog> log)
      : Buffer(block, static_cast<size_t>(bytes), MemoryKind::kDevice, node_id),
        memory_(std::move(memory)),
        usage_(std::move(usage)),
        session_(std::move(session)),
        log_(std::move(log)) {
    log_->Record(bytes, node_id);
  }

 private:
  ~SimBuffer() override {
    log_->Record(-static_cast<int64_t>(bytes()), node_id());
    memory_->Free(data(), static_cast<int64_t>(bytes()));
    usage_->Release(static_cast<int64_t>(bytes()));
    if (session_ != nullptr) session_->Release(static_cast<int64_t>(bytes()));
  }

  const std::shared_ptr<SimMemory> memory_;
  const std::shared_ptr<MemoryBudget> usage_;
  const std::shared_ptr<MemoryBudget> session_;
  const std::shared_ptr<MemoryLog> log_;
};

}  // namespace

SimAllocator::SimAllocator(std::string name, std::shared_ptr<SimMemory> memory, std::shared_ptr<MemoryBudget> session)
    : name_(std::move(name)),
      memory_(std::move(memory)),
      usage_(std::make_shared<MemoryBudget>(memory_->capacity())),
      session_(std::move(session)) {}

absl::StatusOr<BufferRef> SimAllocator::Allocate(int64_t bytes, int32_t node_id) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("cannot allocate ", bytes, " bytes on ", name_));
  if (session_ != nullptr && !session_->Reserve(bytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes on ", name_, ": ",
                                                     session_->in_use(), " of the memory limit of ", session_->limit(),
                                                     " bytes are in use"));
  }
  void* block = nullptr;
  if (bytes <= memory_->capacity() && usage_->Reserve(bytes)) {
    block = memory_->Allocate(bytes);
    if (block == nullptr) usage_->Release(bytes);
  }
  if (block == nullptr) {
    if (session_ != nullptr) session_->Release(bytes);
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot allocate ", bytes, " bytes on ", name_, ": ", usage_->in_use(), " of its ", memory_->capacity(),
        " bytes are in use, the largest free range has ", memory_->LargestFreeRange()));
  }
  allocations_.fetch_add(1, std::memory_order_relaxed);
  return BufferRef(new SimBuffer(block, bytes, node_id, memory_, usage_, session_, log_));
}

AllocatorStats SimAllocator::stats() const {
  return {.bytes_in_use = usage_->in_use(),
          .peak_bytes = usage_->peak(),
          .allocations = allocations_.load(std::memory_order_relaxed)};
}

}  // namespace thalweg
