// Session settings as JSON, for the "config" part of every report. Include from .cc files only.
#pragma once

#include "thalweg/runtime/session.h"
#include "thalweg/tools/json_text.h"

namespace thalweg::tools {

// Every setting, defaults as what they come to (threads: the number of cores).
OrderedJson SessionOptionsJson(const SessionOptions& options);

}  // namespace thalweg::tools
