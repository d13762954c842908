// What outlives every step and callable of a session: devices, threads, resources, and the register of running steps.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "thalweg/devices/device.h"
#include "thalweg/runtime/resource_manager.h"
#include "thalweg/runtime/step.h"
#include "thalweg/runtime/thread_pool.h"

namespace thalweg {

class SessionCore {
 public:
  SessionCore(std::shared_ptr<MemoryBudget> budget, std::vector<std::shared_ptr<Device>> devices, int threads)
      : budget_(std::move(budget)), pool_(threads), devices_(std::move(devices)) {}

  const std::vector<std::shared_ptr<Device>>& devices() const { return devices_; }
  ThreadPool& pool() { return pool_; }
  SessionResources& resources() { return resources_; }
  MemoryBudget& budget() { return *budget_; }
  StepEnvironment environment() { return {&pool_, &resources_, &devices_[0]->allocator()}; }

  // Cancelled once the session is closed. A registered step is cancelled by Close and waited for.
  absl::Status Register(StepState* step);
  void Unregister(StepState* step);
  // A few lines about each registered step.
  std::string DescribeSteps();
  bool closed() const { return closed_.load(std::memory_order_acquire); }
  void Close();

 private:
  std::shared_ptr<MemoryBudget> budget_;
  ThreadPool pool_;
  std::vector<std::shared_ptr<Device>> devices_;
  SessionResources resources_;
  // Of one moment, to turn ticks into time.
  const std::chrono::steady_clock::time_point made_time_ = std::chrono::steady_clock::now();
  const uint64_t made_ticks_ = Recorder::Ticks();
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::condition_variable idle_;
  absl::flat_hash_set<StepState*> running_;  // guarded by mutex_
};

}  // namespace thalweg
