// The named resources of a session, in containers. Thread-safe; a resource is destroyed when its last user lets go.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "thalweg/ops/step_services.h"

namespace thalweg {

class SessionResources final : public ResourceManager {
 public:
  absl::StatusOr<std::shared_ptr<Resource>> Lookup(absl::string_view container, absl::string_view name) override;
  absl::StatusOr<std::shared_ptr<Resource>> LookupOrCreate(absl::string_view container, absl::string_view name, Factory make) override;
  absl::Status Delete(absl::string_view container, absl::string_view name) override;
  // Drops a container with all it holds (A74: a step's own one when the step ends).
  void ClearContainer(absl::string_view container);
  void Clear();

 private:
  using Container = absl::flat_hash_map<std::string, std::shared_ptr<Resource>>;
  std::mutex mutex_;
  absl::flat_hash_map<std::string, Container> containers_;  // guarded by mutex_
};

}  // namespace thalweg
