// The verbs of the program, one file each in tools/verbs. Each has its table of flags and a function that does it.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "thalweg/tools/command_line.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

struct Verb {
  const CommandSpec& (*spec)();
  // Does it and returns the exit code; everything to say has been said.
  int (*run)(const Arguments& arguments, Console& console);
};

extern const Verb kInspectVerb;
extern const Verb kRunVerb;
extern const Verb kPlaceVerb;
extern const Verb kProfileVerb;
extern const Verb kBenchVerb;
extern const Verb kCompareVerb;
extern const Verb kOpsVerb;
extern const Verb kDevicesVerb;
extern const Verb kConfigVerb;
extern const Verb kVersionVerb;
extern const Verb kHelpVerb;

// In the order in which help lists them.
const std::vector<const Verb*>& AllVerbs();
// Null if there is none of that name.
const Verb* FindVerb(absl::string_view name);

}  // namespace thalweg::tools
