// What a kernel may ask of the step and session it runs in. Declared here, implemented in runtime/, so that ops never
// include runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/allocator.h"
#include "thalweg/devices/device.h"
#include "thalweg/devices/object.h"
#include "thalweg/devices/tensor.h"

namespace thalweg {

// Named resources of a session, in containers. Thread-safe.
class ResourceManager {
 public:
  virtual ~ResourceManager() = default;
  // NotFound if there is none.
  virtual absl::StatusOr<std::shared_ptr<Resource>> Lookup(absl::string_view container, absl::string_view name) = 0;
  // The existing resource, or the one that `make` returns, created at most once.
  using Factory = absl::FunctionRef<absl::StatusOr<std::shared_ptr<Resource>>()>;
  virtual absl::StatusOr<std::shared_ptr<Resource>> LookupOrCreate(absl::string_view container, absl::string_view name,
                                                                   Factory make) = 0;
  // NotFound if there is none.
  virtual absl::Status Delete(absl::string_view container, absl::string_view name) = 0;
};

class StepServices {
 public:
  virtual ~StepServices() = default;
  virtual int64_t step_id() const = 0;

  // True once the step failed, was cancelled or timed out: long kernels look at it now and then and return early.
  virtual bool cancelled() const = 0;
  // Calls `fn` once when the step is cancelled; runs it at once if it already is (then returns 0, else a token). Blocked
  // asynchronous kernels register here and must deregister (which waits for a running callback) before they finish.
  virtual uint64_t OnCancel(absl::AnyInvocable<void()> fn) = 0;
  virtual void RemoveOnCancel(uint64_t token) = 0;
  // OnCancel for an asynchronous kernel that may wait long. `waits_for` says in words for what `node` (KernelNode::id) waits: reports
  // about steps that make no progress ask it, from any thread and under a lock, until the registration ends, so it must be quick
  // and call nothing of the step.
  using WaitsFor = absl::AnyInvocable<std::string()>;
  virtual uint64_t OnCancelOfWait(int32_t node, WaitsFor waits_for, absl::AnyInvocable<void()> fn) {
    static_cast<void>(node);
    static_cast<void>(waits_for);
    return OnCancel(std::move(fn));
  }

  virtual ResourceManager& resources() = 0;
  // The container of this step alone, emptied when the step ends.
  virtual absl::string_view step_container() const = 0;

  virtual Allocator& host_allocator() = 0;
  virtual int num_threads() const = 0;
  virtual void ParallelFor(int64_t total, double nanos_per_item, absl::FunctionRef<void(int64_t, int64_t)> fn) = 0;
};

// Finds the resource that a handle means and checks its C++ type. NotFound if it does not exist (any more),
// InvalidArgument if it is of another type.
template <typename T>
absl::StatusOr<std::shared_ptr<T>> LookupResource(StepServices& step, const ResourceHandle& handle) {
  std::shared_ptr<Resource> found = handle.resource;
  if (!found) {
    absl::StatusOr<std::shared_ptr<Resource>> named = step.resources().Lookup(handle.container, handle.name);
    if (!named.ok()) return named.status();
    found = *std::move(named);
  }
  std::shared_ptr<T> typed = std::dynamic_pointer_cast<T>(found);
  if (!typed) {
    return absl::InvalidArgumentError(absl::StrCat("handle '", handle.name, "' means ", found->DebugString(),
                                                   ", which is not what this op works on"));
  }
  return typed;
}

}  // namespace thalweg
