// Device names: /job:J/replica:R/task:T/device:TYPE:ID, full, partial or local ("GPU:0").
//
// Grammar and merge rules are those of the public format: parts in any order, each optional, a later part overrides an
// earlier one; `*` leaves a field unset; /cpu:N and /gpu:N are old spellings. All functions are pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thalweg {

struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;
  std::optional<int> id;

  // InvalidArgument quoting `text` if anything in it is not part of a name. Accepts "" (nothing set).
  static absl::StatusOr<DeviceName> Parse(absl::string_view text);
  // "CPU:0" as well as everything that Parse takes.
  static absl::StatusOr<DeviceName> ParseLocalOrFull(absl::string_view text);

  // Canonical text; unset fields are left out, an unset id of a set type prints as '*'.
  std::string ToString() const;
  // "GPU:0" when type and id are set, otherwise ToString().
  std::string ToShortString() const;

  bool IsFull() const { return job && replica && task && type && id; }
  bool IsEmpty() const { return !job && !replica && !task && !type && !id; }
  // Every field set here is set to the same value in `full` (filter match).
  bool Matches(const DeviceName& full) const;
  // Fields unset here are taken from `base`.
  DeviceName CompletedFrom(const DeviceName& base) const;

  // Merges `other` into this. kStrict: any conflict is InvalidArgument. kSoft: a conflict in type or id clears both (id
  // conflict: clears the id) and succeeds. kOverride: other's type and id win. A conflict in job, replica or task is
  // always InvalidArgument. On error *this is unchanged.
  enum class MergeMode { kStrict, kSoft, kOverride };
  absl::Status Merge(const DeviceName& other, MergeMode mode);

  friend bool operator==(const DeviceName& a, const DeviceName& b) {
    return a.job == b.job && a.replica == b.replica && a.task == b.task && a.type == b.type && a.id == b.id;
  }
};

}  // namespace thalweg
