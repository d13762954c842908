#include "thalweg/tools/command_line.h"

#include <CLI/CLI.hpp>  // the only file that includes it: it takes seconds to compile

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/config_file.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

constexpr char kOn[] = "true";
constexpr char kOff[] = "false";
constexpr char kConfig[] = "config";
constexpr char kDumpConfig[] = "dump-config";
// Keys of a configuration file beside the names of flags.
constexpr char kVerbKey[] = "verb";
constexpr char kArgumentsKey[] = "arguments";

std::vector<FlagSpec> WithCommonFlags(const CommandSpec& spec) {
  std::vector<FlagSpec> flags = spec.flags;
  flags.push_back({FlagKind::kValue, kConfig, "", "f.toml", "read flags from this file; those given here come after"});
  flags.push_back({FlagKind::kValue, kDumpConfig, "", "f.toml", "write the flags of this call for --config"});
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

// What a command line says, with or without the flags of a configuration file before it.
class ArgumentParser {
 public:
  explicit ArgumentParser(const CommandSpec& spec) : spec_(spec), flags_(WithCommonFlags(spec)) {}

  absl::StatusOr<Arguments> Parse(const std::vector<std::string>& arguments) const {
    THALWEG_ASSIGN_OR_RETURN(Arguments parsed, ParseTokens(arguments));
    if (parsed.Has("help")) return parsed;
    if (const std::optional<std::string> path = parsed.Value(kConfig)) {
      THALWEG_ASSIGN_OR_RETURN(std::vector<std::string> tokens, ConfigTokens(*path, parsed.positional().empty()));
      tokens.insert(tokens.end(), arguments.begin(), arguments.end());
      THALWEG_ASSIGN_OR_RETURN(parsed, ParseTokens(tokens));
    }
    if (static_cast<int>(parsed.positional_.size()) < spec_.min_positional) {
      return absl::InvalidArgumentError(absl::StrCat("thalweg ", spec_.verb, " needs ", spec_.positional));
    }
    return parsed;
  }

 private:
  absl::StatusOr<Arguments> ParseTokens(const std::vector<std::string>& tokens) const {
    CLI::App app;
    app.set_help_flag();
    app.allow_extras();
    std::vector<CLI::Option*> options;
    for (const FlagSpec& flag : flags_) options.push_back(AddTo(app, flag));
    CLI::Option* positional = nullptr;
    if (spec_.max_positional > 0) {
      positional = app.add_option("positional")->expected(std::max(1, spec_.min_positional), spec_.max_positional);
    }

    try {
      app.parse(std::vector<std::string>(tokens.rbegin(), tokens.rend()));  // CLI11 reads the vector from its end
    } catch (const CLI::ParseError& error) {
      return MalformedFlag(error);
    }

    Arguments parsed;
    parsed.verb_ = spec_.verb;
    for (size_t i = 0; i < flags_.size(); ++i) {
      if (options[i]->count() == 0) continue;
      std::vector<std::string> values = options[i]->results();
      THALWEG_RETURN_IF_ERROR(CheckSwitch(flags_[i], values));
      if (flags_[i].kind == FlagKind::kOptionalValue)
        std::replace(values.begin(), values.end(), std::string(kOn), std::string());
      if (flags_[i].kind == FlagKind::kPair && values.size() > 2) values.erase(values.begin(), values.end() - 2);
      parsed.flags_.emplace_back(flags_[i].name, std::move(values));
    }
    if (parsed.Has("help")) return parsed;
    const std::vector<std::string> rest = app.remaining();
    if (!rest.empty()) return LeftOver(spec_, flags_, rest);
    if (positional != nullptr) parsed.positional_ = positional->results();
    return parsed;
  }

  // A configuration file as the command line it stands for.
  absl::StatusOr<std::vector<std::string>> ConfigTokens(const std::string& path, bool with_positional) const {
    THALWEG_ASSIGN_OR_RETURN(const FileContents file, ReadFile(path));
    THALWEG_ASSIGN_OR_RETURN(const std::vector<ConfigEntry> entries, ParseConfig(file.bytes, path));
    std::vector<std::string> tokens;
    for (const ConfigEntry& entry : entries) {
      const auto wrong = [&](absl::string_view what) {
        return absl::InvalidArgumentError(absl::StrCat(path, " line ", entry.line, ": ", what));
      };
      if (entry.key == kVerbKey) {
        if (entry.values.size() == 1 && entry.values[0] == spec_.verb) continue;
        return wrong(absl::StrCat("the file is for thalweg ", absl::StrJoin(entry.values, " "), ", this is thalweg ",
                                  spec_.verb));
      }
      if (entry.key == kArgumentsKey) {
        if (with_positional) tokens.insert(tokens.end(), entry.values.begin(), entry.values.end());
        continue;
      }
      if (absl::Status status = AppendFlagTokens(entry, &tokens); !status.ok()) return wrong(status.message());
    }
    return tokens;
  }

  absl::Status AppendFlagTokens(const ConfigEntry& entry, std::vector<std::string>* tokens) const {
    const auto flag =
        std::find_if(flags_.begin(), flags_.end(), [&](const FlagSpec& f) { return f.name == entry.key; });
    if (flag == flags_.end() || entry.key == kConfig || entry.key == kDumpConfig) {
      std::vector<std::string> names = {kVerbKey, kArgumentsKey};
      for (const FlagSpec& f : spec_.flags) names.push_back(f.name);
      const std::vector<std::string> nearest = NearestWords(entry.key, names, 2);
      return absl::InvalidArgumentError(
          absl::StrCat("'", entry.key, "' is no setting of thalweg ", spec_.verb,
                       nearest.empty() ? "" : absl::StrCat("; nearest: ", absl::StrJoin(nearest, ", "))));
    }
    const std::string name = absl::StrCat("--", entry.key);
    if (flag->kind == FlagKind::kPair) {
      if (entry.values.size() != 2)
        return absl::InvalidArgumentError(absl::StrCat("'", entry.key, "' takes two values"));
      tokens->push_back(name);
      tokens->insert(tokens->end(), entry.values.begin(), entry.values.end());
      return absl::OkStatus();
    }
    const bool may_be_many = flag->kind == FlagKind::kRepeated || flag->kind == FlagKind::kOptionalValue;
    if (entry.values.size() != 1 && !may_be_many)
      return absl::InvalidArgumentError(absl::StrCat("'", entry.key, "' takes one value"));
    for (const std::string& value : entry.values) {
      switch (flag->kind) {
        case FlagKind::kSwitch:
        case FlagKind::kOnOff:
          if (value != kOn && value != kOff)
            return absl::InvalidArgumentError(absl::StrCat("'", entry.key, "' is true or false"));
          if (value == kOn) tokens->push_back(name);
          else if (flag->kind == FlagKind::kOnOff) tokens->push_back(absl::StrCat("--no-", entry.key));
          break;
        case FlagKind::kOptionalValue:
          if (value != kOff) tokens->push_back(value == kOn ? name : absl::StrCat(name, "=", value));
          break;
        default: tokens->push_back(absl::StrCat(name, "=", value)); break;
      }
    }
    return absl::OkStatus();
  }

  const CommandSpec& spec_;
  const std::vector<FlagSpec> flags_;
};

absl::StatusOr<Arguments> ParseArguments(const CommandSpec& spec, const std::vector<std::string>& arguments) {
  return ArgumentParser(spec).Parse(arguments);
}

namespace {

std::string TomlArray(const std::vector<std::string>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", ", [](std::string* out, const std::string& v) {
                        absl::StrAppend(out, TomlString(v));
                      }), "]");
}

std::string TomlValue(const FlagSpec& flag, const std::vector<std::string>& values) {
  switch (flag.kind) {
    case FlagKind::kSwitch: return kOn;
    case FlagKind::kOnOff: return values.back();
    case FlagKind::kOptionalValue: {
      std::vector<std::string> texts = values;
      std::replace(texts.begin(), texts.end(), std::string(), std::string(kOn));
      return TomlArray(texts);
    }
    case FlagKind::kValue: return TomlString(values.back());
    case FlagKind::kRepeated:
    case FlagKind::kPair: return TomlArray(values);
  }
  return "";
}

}  // namespace

std::string ConfigText(const CommandSpec& spec, const Arguments& arguments) {
  std::string text =
      absl::StrCat("# thalweg ", spec.verb, " --config FILE\n", kVerbKey, " = ", TomlString(spec.verb), "\n");
  if (!arguments.positional().empty())
    absl::StrAppend(&text, kArgumentsKey, " = ", TomlArray(arguments.positional()), "\n");
  for (const FlagSpec& flag : spec.flags) {
    if (arguments.Has(flag.name)) {
      absl::StrAppend(&text, flag.name, " = ", TomlValue(flag, arguments.All(flag.name)), "\n");
    } else {
      absl::StrAppend(&text, "# ", flag.name, ": ", *flag.help != '\0' ? flag.help : "not given", "\n");
    }
  }
  return text;
}

absl::Status ForFlag(absl::string_view flag, const absl::Status& status) {
  return status.ok() ? status : absl::Status(status.code(), absl::StrCat("--", flag, ": ", status.message()));
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
