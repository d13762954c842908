#include "thalweg/runtime/resource_manager.h"

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

absl::Status NoSuchResource(absl::string_view container, absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("there is no resource '", name, "' in container '", container.empty() ? "localhost" : container,
                                          "': has it been initialised in this session?"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Resource>> SessionResources::Lookup(absl::string_view container, absl::string_view name) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto c = containers_.find(container);
  if (c == containers_.end()) return NoSuchResource(container, name);
  auto r = c->second.find(name);
  if (r == c->second.end()) return NoSuchResource(container, name);
  return r->second;
}

absl::StatusOr<std::shared_ptr<Resource>> SessionResources::LookupOrCreate(absl::string_view container, absl::string_view name,
                                                                           Factory make) {
  std::lock_guard<std::mutex> lock(mutex_);
  Container& c = containers_[std::string(container)];
  auto found = c.find(name);
  if (found != c.end()) return found->second;
  absl::StatusOr<std::shared_ptr<Resource>> made = make();
  if (made.ok()) c.emplace(std::string(name), *made);
  return made;
}

absl::Status SessionResources::Delete(absl::string_view container, absl::string_view name) {
  std::shared_ptr<Resource> doomed;  // declared first: destroyed after the lock is released
  std::lock_guard<std::mutex> lock(mutex_);
  auto c = containers_.find(container);
  if (c == containers_.end()) return NoSuchResource(container, name);
  auto r = c->second.find(name);
  if (r == c->second.end()) return NoSuchResource(container, name);
  doomed = std::move(r->second);
  c->second.erase(r);
  return absl::OkStatus();
}

void SessionResources::ClearContainer(absl::string_view container) {
  Container doomed;
  std::lock_guard<std::mutex> lock(mutex_);
  auto c = containers_.find(container);
  if (c == containers_.end()) return;
  doomed = std::move(c->second);
  containers_.erase(c);
}

void SessionResources::Clear() {
  absl::flat_hash_map<std::string, Container> doomed;
  std::lock_guard<std::mutex> lock(mutex_);
  doomed.swap(containers_);
}

}  // namespace thalweg
