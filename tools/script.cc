#include "thalweg/tools/script.h"

#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/json_text.h"

namespace thalweg::tools {
namespace {

using Json = nlohmann::json;

constexpr char kFormat[] = "thalweg.script/1";
constexpr double kMaxTimeoutSeconds = 1e9;

absl::Status Wrong(absl::string_view where, absl::string_view key, absl::string_view should) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": '", key, "' should be ", should));
}

absl::Status ReadString(const Json& value, absl::string_view where, absl::string_view key, std::string* out) {
  if (!value.is_string()) return Wrong(where, key, "a text");
  *out = value.get<std::string>();
  return absl::OkStatus();
}

absl::Status ReadBool(const Json& value, absl::string_view where, absl::string_view key, bool* out) {
  if (!value.is_boolean()) return Wrong(where, key, "true or false");
  *out = value.get<bool>();
  return absl::OkStatus();
}

absl::Status ReadNames(const Json& value, absl::string_view where, absl::string_view key,
                       std::vector<std::string>* out) {
  if (!value.is_array()) return Wrong(where, key, "a list of tensor names");
  for (const Json& item : value) {
    if (!item.is_string()) return Wrong(where, key, "a list of tensor names");
    out->push_back(item.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadTimeout(const Json& value, absl::string_view where, std::optional<int64_t>* out) {
  if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kMaxTimeoutSeconds) {
    return Wrong(where, "timeout", "a number of seconds");
  }
  *out = static_cast<int64_t>(value.get<double>() * 1e9);
  return absl::OkStatus();
}

absl::StatusOr<ScriptStep> ReadStep(const Json& json, const std::string& where, Script* script) {
  if (!json.is_object()) return absl::InvalidArgumentError(absl::StrCat(where, " should be an object {...}"));
  ScriptStep step;
  for (const auto& [key, value] : json.items()) {
    absl::Status status;
    if (key == "name") status = ReadString(value, where, key, &step.name);
    else if (key == "inputs") status = ReadString(value, where, key, &step.inputs);
    else if (key == "extend") status = ReadString(value, where, key, &step.extend);
    else if (key == "fetches") status = ReadNames(value, where, key, &step.fetches);
    else if (key == "targets") status = ReadNames(value, where, key, &step.targets);
    else if (key == "timeout") status = ReadTimeout(value, where, &step.timeout_nanos);
    else if (key == "new_session") status = ReadBool(value, where, key, &step.new_session);
    else if (key == "close") status = ReadBool(value, where, key, &step.close);
    else if (key == "signature")
      status = absl::UnimplementedError(
          absl::StrCat(where, ": 'signature' is for SavedModels, which this version does not load"));
    else script->unknown_keys.push_back(absl::StrCat(where, ": '", key, "'"));
    if (!status.ok()) return status;
  }
  return step;
}

}  // namespace

absl::StatusOr<Script> ParseScript(absl::string_view text, absl::string_view label) {
  THALWEG_ASSIGN_OR_RETURN(const Json json, ParseJson(text, label));
  if (!json.is_object() || !json.contains("format") || json["format"] != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": not a script: it should begin {\"format\": \"", kFormat, "\", \"steps\": [...]}"));
  }
  if (!json.contains("steps") || !json["steps"].is_array()) {
    return absl::InvalidArgumentError(absl::StrCat(label, ": 'steps' should be a list"));
  }
  Script script;
  for (const Json& item : json["steps"]) {
    THALWEG_ASSIGN_OR_RETURN(ScriptStep step,
                             ReadStep(item, absl::StrCat(label, ": step ", script.steps.size()), &script));
    script.steps.push_back(std::move(step));
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "format" && key != "steps") script.unknown_keys.push_back(absl::StrCat("'", key, "'"));
  }
  return script;
}

absl::StatusOr<Script> ReadScript(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(const FileContents file, ReadFile(path));
  return ParseScript(file.bytes, path);
}

}  // namespace thalweg::tools
