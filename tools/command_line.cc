#include "thalweg/tools/command_line.h"

#include <CLI/CLI.hpp>  // the only file that includes it: it takes seconds to compile

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

constexpr char kOn[] = "true";

std::vector<FlagSpec> WithCommonFlags(const CommandSpec& spec) {
  std::vector<FlagSpec> flags = spec.flags;
  flags.push_back({FlagKind::kSwitch, "help", "h", "", "this text"});
  return flags;
}

std::string CliNames(const FlagSpec& flag) {
  std::string names = absl::StrCat("--", flag.name);
  if (*flag.short_name != '\0') absl::StrAppend(&names, ",-", flag.short_name);
  if (flag.kind == FlagKind::kOnOff) absl::StrAppend(&names, ",!--no-", flag.name);
  return names;
}

// How many arguments behind the flag are its values.
int ValueCount(const FlagSpec& flag) {
  switch (flag.kind) {
    case FlagKind::kValue:
    case FlagKind::kRepeated: return 1;
    case FlagKind::kPair: return 2;
    case FlagKind::kSwitch:
    case FlagKind::kOnOff:
    case FlagKind::kOptionalValue: return 0;
  }
  return 0;
}

CLI::Option* AddTo(CLI::App& app, const FlagSpec& flag) {
  CLI::Option* option = nullptr;
  if (const int count = ValueCount(flag); count > 0) {
    option = app.add_option(CliNames(flag));
    option->expected(count)->allow_extra_args(false);
  } else {
    option = app.add_flag(CliNames(flag));
  }
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

std::vector<std::string> AllSpellings(const std::vector<FlagSpec>& flags) {
  std::vector<std::string> names;
  for (const FlagSpec& flag : flags) {
    names.push_back(absl::StrCat("--", flag.name));
    if (flag.kind == FlagKind::kOnOff) names.push_back(absl::StrCat("--no-", flag.name));
    if (*flag.short_name != '\0') names.push_back(absl::StrCat("-", flag.short_name));
  }
  return names;
}

absl::Status LeftOver(const CommandSpec& spec, const std::vector<FlagSpec>& flags,
                      const std::vector<std::string>& rest) {
  const auto unknown =
      std::find_if(rest.begin(), rest.end(), [](const std::string& a) { return a.size() > 1 && a[0] == '-'; });
  if (unknown == rest.end()) {
    const std::string takes = spec.max_positional == 0 ? std::string("takes no arguments besides flags")
                                                       : absl::StrCat("takes only ", spec.positional);
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument '", rest[0], "': thalweg ", spec.verb, " ", takes));
  }
  const std::string name = unknown->substr(0, unknown->find('='));
  const std::vector<std::string> nearest = NearestWords(name, AllSpellings(flags), 2);
  return absl::InvalidArgumentError(
      absl::StrCat("unknown flag '", name, "' of thalweg ", spec.verb,
                   nearest.empty() ? "" : absl::StrCat("; nearest: ", absl::StrJoin(nearest, ", "))));
}

// A switch that was given a value ("--json=yes").
absl::Status CheckSwitch(const FlagSpec& flag, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    if (flag.kind == FlagKind::kSwitch && value != kOn) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag.name, " takes no value, but '", value, "' was given"));
    }
  }
  return absl::OkStatus();
}

// What parsing could not make sense of, in our words; CLI11's name of the error decides.
absl::Status MalformedFlag(const CLI::ParseError& error) {
  return absl::InvalidArgumentError(absl::StrCat(error.what(), " (a flag lacks its value)"));
}

std::string FlagColumn(const FlagSpec& flag) {
  std::string text = *flag.short_name != '\0' ? absl::StrCat("-", flag.short_name, ", ") : "    ";
  absl::StrAppend(&text, "--", flag.kind == FlagKind::kOnOff ? "[no-]" : "", flag.name);
  if (flag.kind == FlagKind::kOptionalValue) absl::StrAppend(&text, "[=", flag.value, "]");
  else if (*flag.value != '\0') absl::StrAppend(&text, " ", flag.value);
  return text;
}

}  // namespace

const std::vector<std::string>* Arguments::Find(absl::string_view flag) const {
  for (const auto& [name, values] : flags_) {
    if (name == flag) return &values;
  }
  return nullptr;
}

std::optional<std::string> Arguments::Value(absl::string_view flag) const {
  const std::vector<std::string>* values = Find(flag);
  return values == nullptr ? std::nullopt : std::optional<std::string>(values->back());
}

std::string Arguments::ValueOr(absl::string_view flag, absl::string_view fallback) const {
  return Value(flag).value_or(std::string(fallback));
}

bool Arguments::OnOff(absl::string_view flag, bool fallback) const {
  const std::optional<std::string> value = Value(flag);
  return value ? *value == kOn : fallback;
}

std::vector<std::string> Arguments::All(absl::string_view flag) const {
  const std::vector<std::string>* values = Find(flag);
  return values == nullptr ? std::vector<std::string>() : *values;
}

absl::StatusOr<Arguments> ParseArguments(const CommandSpec& spec, const std::vector<std::string>& arguments) {
  const std::vector<FlagSpec> flags = WithCommonFlags(spec);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> options;
  for (const FlagSpec& flag : flags) options.push_back(AddTo(app, flag));
  CLI::Option* positional = nullptr;
  if (spec.max_positional > 0) positional = app.add_option("positional")->expected(1, spec.max_positional);

  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 reads the vector from its end
  } catch (const CLI::ParseError& error) {
    return MalformedFlag(error);
  }

  Arguments parsed;
  parsed.verb_ = spec.verb;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (options[i]->count() == 0) continue;
    std::vector<std::string> values = options[i]->results();
    if (absl::Status status = CheckSwitch(flags[i], values); !status.ok()) return status;
    if (flags[i].kind == FlagKind::kOptionalValue)
      std::replace(values.begin(), values.end(), std::string(kOn), std::string());
    parsed.flags_.emplace_back(flags[i].name, std::move(values));
  }
  if (parsed.Has("help")) return parsed;
  const std::vector<std::string> rest = app.remaining();
  if (!rest.empty()) return LeftOver(spec, flags, rest);
  if (positional != nullptr) parsed.positional_ = positional->results();
  if (static_cast<int>(parsed.positional_.size()) < spec.min_positional) {
    return absl::InvalidArgumentError(absl::StrCat("thalweg ", spec.verb, " needs ", spec.positional));
  }
  return parsed;
}

std::string HelpText(const CommandSpec& spec) {
  std::string text = absl::StrCat("thalweg ", spec.verb, *spec.positional != '\0' ? " " : "", spec.positional,
                                  " [flags]\n", spec.summary, "\n\n");
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  for (const FlagSpec& flag : WithCommonFlags(spec)) table.AddRow({FlagColumn(flag), flag.help});
  absl::StrAppend(&text, table.ToString("  "), "\n");
  for (const char* example : spec.examples) absl::StrAppend(&text, "  $ ", example, "\n");
  return text;
}

}  // namespace thalweg::tools
