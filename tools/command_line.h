// The command line: every verb describes itself in a table (CommandSpec), from which parsing and help are made.
//
// A flag given twice: the last wins, except repeated ones, which add up. `--flag value` and `--flag=value` are the
// same; a switch takes no value; an optional value is given only as `--flag=value`. Every verb takes --config f.toml,
// whose flags count as given before those of the command line, and --dump-config f.toml, which writes such a file.
// Errors: InvalidArgument quotes the offending argument and names the nearest flag.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace thalweg::tools {

enum class FlagKind {
  kSwitch,         // --json
  kOnOff,          // --soft-placement, --no-soft-placement
  kValue,          // --timeout 5s
  kOptionalValue,  // --print, --print=5
  kRepeated,       // -f a -f b
  kPair,           // --path a b; the values of Arguments are those two
};

struct FlagSpec {
  FlagKind kind = FlagKind::kSwitch;
  const char* name;        // long name without dashes; how Arguments are asked
  const char* short_name;  // one letter, or ""
  const char* value;       // placeholder of the value in the help; "" for switches
  const char* help;
};

struct CommandSpec {
  const char* verb;
  const char* summary;
  const char* positional;  // "GRAPH", or "" for none
  int min_positional = 0;
  int max_positional = 0;
  std::vector<FlagSpec> flags;
  std::vector<const char*> examples;
};

class Arguments {
 public:
  // The verb as typed, for messages.
  const std::string& verb() const { return verb_; }
  const std::vector<std::string>& positional() const { return positional_; }

  bool Has(absl::string_view flag) const { return Find(flag) != nullptr; }
  // The last value given; nullopt if the flag is absent. An optional value that was left out is "".
  std::optional<std::string> Value(absl::string_view flag) const;
  std::string ValueOr(absl::string_view flag, absl::string_view fallback) const;
  // Of a kOnOff flag.
  bool OnOff(absl::string_view flag, bool fallback) const;
  // All values in the order given.
  std::vector<std::string> All(absl::string_view flag) const;

 private:
  friend class ArgumentParser;
  const std::vector<std::string>* Find(absl::string_view flag) const;

  std::string verb_;
  std::vector<std::string> positional_;
  std::vector<std::pair<std::string, std::vector<std::string>>> flags_;
};

// `arguments` are those after the verb. Reads the file of --config, if there is one.
absl::StatusOr<Arguments> ParseArguments(const CommandSpec& spec, const std::vector<std::string>& arguments);

// What --dump-config writes: with --config it means the same call. Flags that were not given are comments.
std::string ConfigText(const CommandSpec& spec, const Arguments& arguments);

// The same status with "--flag: " before its message; OK stays OK.
absl::Status ForFlag(absl::string_view flag, const absl::Status& status);

// Reads a flag, if it is there, with one of the functions of units.h; errors name the flag.
template <typename T, typename Parse>
absl::Status ReadFlag(const Arguments& arguments, const char* flag, T* out, Parse parse) {
  const auto text = arguments.Value(flag);
  if (!text) return absl::OkStatus();
  auto value = parse(*text);
  if (!value.ok()) return ForFlag(flag, value.status());
  *out = *std::move(value);
  return absl::OkStatus();
}

// One screen: usage, flags, examples.
std::string HelpText(const CommandSpec& spec);

}  // namespace thalweg::tools
