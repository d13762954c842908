// How much memory there is, and refusing what cannot fit before it is allocated.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace thalweg::tools {

// The most this process may ever use: physical memory or the limit of its control group, whichever is less.
int64_t TotalMemoryBytes();
// ResourceExhausted, naming `what`, if `bytes` are more than four fifths of that.
absl::Status CheckFitsMemory(int64_t bytes, absl::string_view what);
// The largest resident set of this process so far (VmHWM); 0 if the system does not say.
int64_t PeakResidentBytes();
// Starts PeakResidentBytes afresh, where the system allows it.
void ResetPeakResident();

}  // namespace thalweg::tools
