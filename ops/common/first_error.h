// Collects the first error of work that several threads do.
#pragma once

#include <mutex>
#include <utility>

#include "absl/status/status.h"

namespace thalweg {

class FirstError {
 public:
  // Keeps `status` if it is the first that is not OK. Thread-safe.
  void Update(absl::Status status) {
    if (__builtin_expect(status.ok(), 1)) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  // Once all threads are done.
  absl::Status status() const { return status_; }

 private:
  std::mutex mutex_;
  absl::Status status_;
};

}  // namespace thalweg
