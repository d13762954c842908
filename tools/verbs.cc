#include "thalweg/tools/verbs.h"

namespace thalweg::tools {

const std::vector<const Verb*>& AllVerbs() {
  static const auto* const verbs = new std::vector<const Verb*>{
      &kInspectVerb, &kRunVerb, &kPlaceVerb,   &kProfileVerb, &kBenchVerb, &kCompareVerb,
      &kOpsVerb,     &kDevicesVerb, &kConfigVerb, &kVersionVerb, &kHelpVerb,
  };
  return *verbs;
}

const Verb* FindVerb(absl::string_view name) {
  for (const Verb* verb : AllVerbs()) {
    if (verb->spec().verb == name) return verb;
  }
  return nullptr;
}

}  // namespace thalweg::tools
