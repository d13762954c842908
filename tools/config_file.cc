#include "thalweg/tools/config_file.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg::tools {
namespace {

bool IsKeyCharacter(char c) { return absl::ascii_isalnum(c) || c == '-' || c == '_'; }
bool IsBareCharacter(char c) { return IsKeyCharacter(c) || c == '.' || c == '+'; }

class ConfigParser {
 public:
  ConfigParser(absl::string_view text, absl::string_view label) : rest_(text), label_(label) {}

  absl::StatusOr<std::vector<ConfigEntry>> Parse() {
    std::vector<ConfigEntry> entries;
    while (true) {
      SkipBlank(/*lines=*/true);
      if (rest_.empty()) return entries;
      ConfigEntry entry;
      THALWEG_RETURN_IF_ERROR(ReadEntry(&entry));
      for (const ConfigEntry& other : entries) {
        if (other.key == entry.key)
          return Wrong(absl::StrCat("'", entry.key, "' stands in line ", other.line, " already"));
      }
      entries.push_back(std::move(entry));
    }
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(label_, " line ", line_, ": ", what));
  }

  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Blanks and comments; ends of lines only if `lines`.
  void SkipBlank(bool lines) {
    while (!rest_.empty()) {
      const char c = rest_[0];
      if (c == '#') {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (c == ' ' || c == '\t' || c == '\r' || (lines && c == '\n')) {
        line_ += c == '\n';
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  std::string TakeWhile(bool (*belongs)(char)) {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), belongs);
    std::string word(rest_.begin(), end);
    rest_.remove_prefix(word.size());
    return word;
  }

  absl::Status ReadEntry(ConfigEntry* entry) {
    entry->line = line_;
    if (rest_[0] == '[') return Wrong("tables are not used in these files; write key = value");
    entry->key = TakeWhile(&IsKeyCharacter);
    if (entry->key.empty()) return Wrong("a key is expected here, as in threads = 2");
    SkipBlank(false);
    if (!Take('=')) return Wrong(absl::StrCat("'=' is expected after '", entry->key, "'"));
    SkipBlank(false);
    entry->is_array = Take('[');
    THALWEG_RETURN_IF_ERROR(entry->is_array ? ReadArray(entry) : ReadValue(entry));
    SkipBlank(false);
    if (!rest_.empty() && rest_[0] != '\n')
      return Wrong(absl::StrCat("more text after the value of '", entry->key, "'"));
    return absl::OkStatus();
  }

  absl::Status ReadArray(ConfigEntry* entry) {
    while (true) {
      SkipBlank(true);
      if (Take(']')) return absl::OkStatus();
      THALWEG_RETURN_IF_ERROR(ReadValue(entry));
      SkipBlank(true);
      if (Take(']')) return absl::OkStatus();
      if (!Take(',')) return Wrong(absl::StrCat("',' or ']' is expected in the array of '", entry->key, "'"));
    }
  }

  absl::Status ReadValue(ConfigEntry* entry) {
    if (Take('\'')) return ReadLiteralString(entry);
    if (Take('"')) return ReadBasicString(entry);
    std::string word = TakeWhile(&IsBareCharacter);
    const bool number =
        !word.empty() && (absl::ascii_isdigit(word[0]) || word[0] == '-' || word[0] == '+' || word[0] == '.');
    if (!number && word != "true" && word != "false") {
      return Wrong(absl::StrCat("the value of '", entry->key,
                                "' is a string in quotes, true, false, a number, or an array of these"));
    }
    entry->values.push_back(std::move(word));
    return absl::OkStatus();
  }

  absl::Status ReadLiteralString(ConfigEntry* entry) {
    const size_t end = rest_.find_first_of("'\n");
    if (end == absl::string_view::npos || rest_[end] == '\n')
      return Wrong("the string that begins here does not end in its line");
    entry->values.emplace_back(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  absl::Status ReadBasicString(ConfigEntry* entry) {
    std::string value;
    while (!rest_.empty() && rest_[0] != '\n') {
      const char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '"') {
        entry->values.push_back(std::move(value));
        return absl::OkStatus();
      }
      if (c != '\\') value.push_back(c);
      else THALWEG_RETURN_IF_ERROR(ReadEscape(&value));
    }
    return Wrong("the string that begins here does not end in its line");
  }

  // What follows a backslash.
  absl::Status ReadEscape(std::string* value) {
    constexpr absl::string_view kLetters = "\"\\ntrbf", kMeanings = "\"\\\n\t\r\b\f";
    const size_t letter = rest_.empty() ? absl::string_view::npos : kLetters.find(rest_[0]);
    if (letter != absl::string_view::npos) {
      value->push_back(kMeanings[letter]);
      rest_.remove_prefix(1);
      return absl::OkStatus();
    }
    // Control characters are all that is ever written this way.
    const absl::string_view hex = rest_.substr(0, 5);
    const auto is_hex = [](char c) { return absl::ascii_isxdigit(c); };
    if (hex.size() == 5 && absl::StartsWith(hex, "u00") && std::all_of(hex.begin() + 1, hex.end(), is_hex)) {
      const int code = std::stoi(std::string(hex.substr(1)), nullptr, 16);
      if (code < 0x80) {
        value->push_back(static_cast<char>(code));
        rest_.remove_prefix(5);
        return absl::OkStatus();
      }
    }
    return Wrong("unknown escape in a string; there are \\\" \\\\ \\n \\t \\r \\b \\f \\u0000-\\u007f");
  }

  absl::string_view rest_;
  const absl::string_view label_;
  int line_ = 1;
};

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(absl::string_view text, absl::string_view label) {
  return ConfigParser(text, label).Parse();
}

std::string TomlString(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') absl::StrAppend(&out, "\\", absl::string_view(&c, 1));
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<int>(c));
    else out.push_back(c);
  }
  out.push_back('"');
  return out;
}

}  // namespace thalweg::tools
