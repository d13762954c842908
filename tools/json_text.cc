#include "thalweg/tools/json_text.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thalweg::tools {
namespace {

constexpr int kMaxNesting = 64;

// Depth of brackets outside strings; the parser and the destructor of its values recurse, so it is bounded first.
bool NestsTooDeeply(absl::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxNesting) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// Line and column of a byte, counted from one.
std::string Place(absl::string_view text, size_t byte) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n';
  }
  return absl::StrCat("line ", line, ", column ", column);
}

}  // namespace

absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text, absl::string_view label) {
  if (NestsTooDeeply(text))
    return absl::InvalidArgumentError(absl::StrCat(label, ": JSON nested more than ", kMaxNesting, " deep"));
  try {
    return nlohmann::json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(label, ": not JSON: something is wrong at ", Place(text, error.byte)));
  }
}

std::string ToText(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace thalweg::tools
