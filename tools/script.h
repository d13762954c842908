// Scripts of `thalweg run --script`: several steps in one session. The form is documented in `thalweg help scripts`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thalweg::tools {

struct ScriptStep {
  std::string name;
  std::string inputs;  // a .npz with exactly this step's feeds; "" for none
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::optional<int64_t> timeout_nanos;
  std::string extend;        // a GraphDef to add to the session's graph first; "" for none
  bool new_session = false;  // a fresh session first
  bool close = false;        // closes the session first

  // Without fetches and targets there is nothing to run: such a step only extends, closes or starts anew.
  bool runs() const { return !fetches.empty() || !targets.empty() || !inputs.empty(); }
};

struct Script {
  std::vector<ScriptStep> steps;
  std::vector<std::string> unknown_keys;  // "step 2: 'fetch'": passed over, worth a warning
};

// InvalidArgument, naming the step and key, for text that is not such a script.
absl::StatusOr<Script> ParseScript(absl::string_view json, absl::string_view label);
absl::StatusOr<Script> ReadScript(const std::string& path);

}  // namespace thalweg::tools
