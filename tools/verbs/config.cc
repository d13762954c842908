// thalweg config: every setting with its default and every environment variable that is read.
#include <algorithm>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/memory.h"
#include "thalweg/tools/session_json.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

const CommandSpec& Spec() {
  static const auto* const spec =
      new CommandSpec{"config",
                      "Shows the defaults on this machine and the environment variables that are read.",
                      "",
                      0,
                      0,
                      {{FlagKind::kSwitch, "json", "", "", "for programs"}},
                      {"thalweg config", "thalweg config --json", "NO_COLOR=1 thalweg inspect model.pb"}};
  return *spec;
}

struct Variable {
  const char* name;
  const char* meaning;
};
constexpr Variable kVariables[] = {
    {"NO_COLOR", "set to anything: no colour on terminals"},
};

std::string ValueOf(const Variable& variable) {
  const char* value = std::getenv(variable.name);
  return value == nullptr ? "" : value;
}

int Run(const Arguments& arguments, Console& console) {
  const OrderedJson defaults = SessionOptionsJson(SessionOptions());
  if (arguments.Has("json")) {
    OrderedJson json;
    json["schema"] = "thalweg.config/1";
    json["defaults"] = defaults;
    json["environment"] = OrderedJson::object();
    for (const Variable& variable : kVariables) json["environment"][variable.name] = ValueOf(variable);
    console.Print(ToText(json));
    return kExitOk;
  }
  Table table({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft});
  for (const auto& [key, value] : defaults.items()) table.AddRow({key, value.dump(), "default"});
  for (const Variable& variable : kVariables) {
    table.AddRow({variable.name, ValueOf(variable).empty() ? "not set" : ValueOf(variable), variable.meaning});
  }
  console.Print(table.ToString());
  return kExitOk;
}

}  // namespace

const Verb kConfigVerb{&Spec, &Run};

}  // namespace thalweg::tools
