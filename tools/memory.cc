#include "thalweg/tools/memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

// The limit of the control group, version 2 or 1; max() if there is none.
int64_t ControlGroupLimit() {
  int64_t limit = std::numeric_limits<int64_t>::max();
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    std::string text;
    int64_t value = 0;
    if (file >> text && absl::SimpleAtoi(text, &value) && value > 0) limit = std::min(limit, value);
  }
  return limit;
}

}  // namespace

int64_t TotalMemoryBytes() {
  const int64_t physical = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  return std::min(physical, ControlGroupLimit());
}

absl::Status CheckFitsMemory(int64_t bytes, absl::string_view what) {
  const int64_t limit = TotalMemoryBytes() / 5 * 4;
  if (bytes <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(what, " takes ", FormatBytes(static_cast<double>(bytes)),
                                                   ", but this machine allows ",
                                                   FormatBytes(static_cast<double>(limit))));
}

int64_t PeakResidentBytes() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "VmHWM:")) continue;
    for (absl::string_view word : absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
      int64_t kib = 0;
      if (absl::SimpleAtoi(word, &kib)) return kib * 1024;
    }
  }
  return 0;
}

void ResetPeakResident() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace thalweg::tools
