// Reading and writing JSON without exceptions. Include it from .cc files only: the library behind it is large.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thalweg::tools {

// Objects keep the order in which keys were added: reports read as they were written.
using OrderedJson = nlohmann::ordered_json;

// InvalidArgument with the position for malformed or absurdly nested text.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view label);
// Indented text; bytes that are not UTF-8 are replaced.
std::string ToText(const OrderedJson& json);

}  // namespace thalweg::tools
