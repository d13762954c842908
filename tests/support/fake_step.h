// A StepServices without a session, for tests of single kernels: resources in a map, and a ParallelFor that splits
// work unevenly on the calling thread, so that kernels must be right for any split.
//
// Threading: not thread-safe, except cancellation.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/ops/step_services.h"

namespace thalweg::testing {

class FakeResources : public ResourceManager {
 public:
  absl::StatusOr<std::shared_ptr<Resource>> Lookup(absl::string_view container, absl::string_view name) override;
  absl::StatusOr<std::shared_ptr<Resource>> LookupOrCreate(absl::string_view container, absl::string_view name,
                                                           Factory make) override;
  absl::Status Delete(absl::string_view container, absl::string_view name) override;

 private:
  using Key = std::pair<std::string, std::string>;
  std::map<Key, std::shared_ptr<Resource>> resources_;
};

class FakeStep : public StepServices {
 public:
  // How ParallelFor cuts its range: 1 means one call for everything.
  void set_pieces(int pieces) { pieces_ = pieces; }
  void Cancel();

  int64_t step_id() const override { return 1; }
  bool cancelled() const override { return cancelled_.load(); }
  uint64_t OnCancel(absl::AnyInvocable<void()> fn) override;
  void RemoveOnCancel(uint64_t token) override;
  ResourceManager& resources() override { return resources_; }
  absl::string_view step_container() const override { return "step"; }
  Allocator& host_allocator() override { return DefaultHostAllocator(); }
  int num_threads() const override { return pieces_; }
  void ParallelFor(int64_t total, double nanos_per_item, absl::FunctionRef<void(int64_t, int64_t)> fn) override;

 private:
  int pieces_ = 1;
  FakeResources resources_;
  std::atomic<bool> cancelled_{false};
  std::mutex cancel_mutex_;
  uint64_t next_token_ = 1;
  std::map<uint64_t, absl::AnyInvocable<void()>> on_cancel_;
};

}  // namespace thalweg::testing
