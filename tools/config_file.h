// Configuration files: the flags of one call as TOML, written by --dump-config and read by --config.
//
//   verb = "run"
//   arguments = ["model.pb"]
//   fetch = ["prob", "logits"]
//   timeout = "5s"
//   json = true
//
// Read is the part of TOML that such files need: `key = value` lines, comments, strings, booleans, numbers and arrays
// of these. Keys are the long names of flags. Errors: InvalidArgument names the file, the line and what is wrong there.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thalweg::tools {

struct ConfigEntry {
  std::string key;
  // Strings unescaped, booleans as "true" and "false", numbers as written; an array of no values is empty.
  std::vector<std::string> values;
  bool is_array = false;
  int line = 0;
};

// `label` names the source in messages.
absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(absl::string_view text, absl::string_view label);

// A basic string of TOML, quotes included.
std::string TomlString(absl::string_view text);

}  // namespace thalweg::tools
