// thalweg version: what this program is. Registers no ops, so that it answers at once.
#include "absl/strings/str_cat.h"
#include "build_info.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

const CommandSpec& Spec() {
  static const auto* const spec = new CommandSpec{"version",
                                                  "Prints the version, the commit and how it was built.",
                                                  "",
                                                  0,
                                                  0,
                                                  {{FlagKind::kSwitch, "json", "", "", "for programs"}},
                                                  {"thalweg version", "thalweg version --json", "thalweg --version"}};
  return *spec;
}

int Run(const Arguments& arguments, Console& console) {
  const std::string compiler = absl::StrCat("g++ ", __VERSION__);
  if (arguments.Has("json")) {
    OrderedJson json;
    json["schema"] = "thalweg.version/1";
    json["version"] = kVersion;
    json["commit"] = kCommit;
    json["build_type"] = kBuildType;
    json["sanitizers"] = kSanitizers;
    json["compiler"] = compiler;
    console.Print(ToText(json));
    return kExitOk;
  }
  console.Print(absl::StrCat("thalweg ", kVersion, " (", kCommit, ")  ", kBuildType,
                             *kSanitizers != '\0' ? " with " : "", kSanitizers, ", ", compiler, "\n"));
  return kExitOk;
}

}  // namespace

const Verb kVersionVerb{&Spec, &Run};

}  // namespace thalweg::tools
