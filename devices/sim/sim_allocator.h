// The allocator of a simulated device: buffers in SimMemory, counted, limited by the memory's capacity and, together with
// what the session uses on the host, by the session's budget: both come out of the same machine.
//
// Threading: all methods are thread-safe. Buffers keep the memory alive, so they may outlive the allocator.
#pragma once

#include <memory>
#include <string>

#include "thalweg/devices/allocator.h"
#include "thalweg/devices/sim/sim_memory.h"

namespace thalweg {

class SimAllocator final : public Allocator {
 public:
  // `session` may be null: no limit but the capacity.
  SimAllocator(std::string name, std::shared_ptr<SimMemory> memory, std::shared_ptr<MemoryBudget> session);

  absl::string_view name() const override { return name_; }
  MemoryKind memory() const override { return MemoryKind::kDevice; }
  absl::StatusOr<BufferRef> Allocate(int64_t bytes, int32_t node_id) override;
  AllocatorStats stats() const override;
  MemoryLog& memory_log() override { return *log_; }

 private:
  const std::string name_;
  const std::shared_ptr<SimMemory> memory_;
  const std::shared_ptr<MemoryBudget> usage_;    // of this device
  const std::shared_ptr<MemoryBudget> session_;  // of all devices of the session
  const std::shared_ptr<MemoryLog> log_ = std::make_shared<MemoryLog>();
  std::atomic<int64_t> allocations_{0};
};

}  // namespace thalweg
