// The flags that say how a session is made, shared by run, bench and place: -d, --threads, --policy, --pin, ...
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/command_line.h"
#include "thalweg/tools/exit_codes.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

// Adds to a verb's table.
void AppendSessionFlags(std::vector<FlagSpec>* flags);
void AppendPlacementFlags(std::vector<FlagSpec>* flags);  // -d, --pin, --policy, --placement, --[no-]soft-placement only

// Reads and checks them. A failure has exit code 2 for malformed values, 7 for a device that is not there.
struct SessionFlagsResult {
  SessionOptions options;
  Failure failure;  // status OK if all is well
};
SessionFlagsResult ReadSessionFlags(const Arguments& arguments);

// --no-opt without a list switches every pass off.
bool OptimizeFlag(const Arguments& arguments, std::vector<std::string>* disabled_passes);

}  // namespace thalweg::tools
