// The next command to paste after an error: rule 8 of the command line.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "thalweg/runtime/session.h"

namespace thalweg::tools {

// After a graph could not be loaded.
std::string AdviceForLoad(const std::string& graph, const absl::Status& status);
// After a step failed. `verb` is the verb that ran it.
std::string AdviceForStep(absl::string_view verb, const std::string& graph, const absl::Status& status);
// True if a node, a pin or a placement file asks for a device that the session does not have, and may not have another:
// placement says so in words. Soft placement gives up type and number of a device, not its job, replica and task.
bool LacksDevice(const absl::Status& status);

}  // namespace thalweg::tools
