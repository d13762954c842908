#include "thalweg/tests/support/fake_step.h"

#include <algorithm>

namespace thalweg::testing {
namespace {

std::pair<std::string, std::string> MakeKey(absl::string_view container, absl::string_view name) {
  return {std::string(container), std::string(name)};
}

}  // namespace

absl::StatusOr<std::shared_ptr<Resource>> FakeResources::Lookup(absl::string_view container, absl::string_view name) {
  const auto found = resources_.find(MakeKey(container, name));
  if (found == resources_.end()) return absl::NotFoundError(absl::StrCat("no resource ", container, "/", name));
  return found->second;
}

absl::StatusOr<std::shared_ptr<Resource>> FakeResources::LookupOrCreate(absl::string_view container,
                                                                        absl::string_view name, Factory make) {
  std::shared_ptr<Resource>& slot = resources_[MakeKey(container, name)];
  if (!slot) {
    absl::StatusOr<std::shared_ptr<Resource>> made = make();
    if (!made.ok()) {
      resources_.erase(MakeKey(container, name));
      return made.status();
    }
    slot = *std::move(made);
  }
  return slot;
}

absl::Status FakeResources::Delete(absl::string_view container, absl::string_view name) {
  if (resources_.erase(MakeKey(container, name)) > 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("no resource ", container, "/", name));
}

void FakeStep::Cancel() {
  std::map<uint64_t, absl::AnyInvocable<void()>> callbacks;
  {
    std::lock_guard<std::mutex> lock(cancel_mutex_);
    cancelled_ = true;
    callbacks.swap(on_cancel_);
  }
  for (auto& [token, fn] : callbacks) fn();
}

uint64_t FakeStep::OnCancel(absl::AnyInvocable<void()> fn) {
  {
    std::lock_guard<std::mutex> lock(cancel_mutex_);
    if (!cancelled_) {
      on_cancel_.emplace(next_token_, std::move(fn));
      return next_token_++;
    }
  }
  fn();
  return 0;
}

void FakeStep::RemoveOnCancel(uint64_t token) {
  std::lock_guard<std::mutex> lock(cancel_mutex_);
  on_cancel_.erase(token);
}

void FakeStep::ParallelFor(int64_t total, double, absl::FunctionRef<void(int64_t, int64_t)> fn) {
  int64_t begin = 0;
  for (int piece = 0; piece < pieces_ && begin < total; ++piece) {
    // Each piece but the last takes about a third of what is left: sizes differ, and odd ones occur.
    const int64_t left = total - begin;
    const int64_t end = piece + 1 == pieces_ ? total : begin + std::max<int64_t>(1, left / 3);
    fn(begin, end);
    begin = end;
  }
}

}  // namespace thalweg::testing
