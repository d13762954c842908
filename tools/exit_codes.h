// The exit codes of the program: part of its interface (scripts and CI branch on them), so they never change meaning.
#pragma once

#include "absl/status/status.h"

namespace thalweg::tools {

enum ExitCode : int {
  kExitOk = 0,
  kExitRunFailed = 1,      // a step failed; a fetch, feed or target that does not exist
  kExitUsage = 2,          // unknown flag, malformed value, unreadable input file
  kExitGraphUnusable = 3,  // missing, garbled or refused graph; findings of `inspect --check`
  kExitCompareFailed = 4,  // --expect
  kExitOutOfMemory = 5,
  kExitTimeout = 6,
  kExitDeviceMissing = 7,  // a hard constraint asks for a device that is not there
  kExitInterrupted = 130,
};

// The exit code for a step that ended with `status`.
inline ExitCode ExitCodeOfRun(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk: return kExitOk;
    case absl::StatusCode::kResourceExhausted: return kExitOutOfMemory;
    case absl::StatusCode::kDeadlineExceeded: return kExitTimeout;
    default: return kExitRunFailed;
  }
}

// The exit code for a graph that could not be loaded with `status`.
inline ExitCode ExitCodeOfLoad(const absl::Status& status) {
  if (status.ok()) return kExitOk;
  return absl::IsResourceExhausted(status) ? kExitOutOfMemory : kExitGraphUnusable;
}

}  // namespace thalweg::tools
