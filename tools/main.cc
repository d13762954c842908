// thalweg VERB FILE... [flags]
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

int UnknownVerb(const std::string& name, Console& console) {
  std::vector<std::string> names;
  for (const Verb* verb : AllVerbs()) names.push_back(verb->spec().verb);
  const std::vector<std::string> nearest = NearestWords(name, names, 2);
  return console.Fail({absl::InvalidArgumentError(
                           absl::StrCat("unknown verb '", name, "'",
                                        nearest.empty() ? absl::StrCat("; there are ", absl::StrJoin(names, ", "))
                                                        : absl::StrCat("; nearest: ", absl::StrJoin(nearest, ", ")))),
                       kExitUsage, "thalweg help"});
}

int Main(std::vector<std::string> arguments) {
  Console console;
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") arguments = {"help"};
  if (arguments[0] == "--version") arguments = {"version"};
  const std::string name = arguments[0];
  const Verb* verb = FindVerb(name);
  if (verb == nullptr) return UnknownVerb(name, console);
  arguments.erase(arguments.begin());

  const absl::StatusOr<Arguments> parsed = ParseArguments(verb->spec(), arguments);
  if (!parsed.ok()) return console.Fail({parsed.status(), kExitUsage, absl::StrCat("thalweg help ", name)});
  if (parsed->Has("help")) {
    console.Print(HelpText(verb->spec()));
    return kExitOk;
  }
  console.set_quiet(parsed->Has("quiet"));
  if (const std::optional<std::string> path = parsed->Value("dump-config")) {
    if (const absl::Status status = WriteFile(*path, ConfigText(verb->spec(), *parsed)); !status.ok())
      return console.Fail({status, kExitUsage, absl::StrCat("thalweg help ", name)});
  }
  const int exit_code = verb->run(*parsed, console);
  if (std::fflush(stdout) != 0 && exit_code == kExitOk) {
    return console.Fail({absl::DataLossError("not all output could be written to stdout"), kExitRunFailed, "df -h ."});
  }
  return exit_code;
}

}  // namespace
}  // namespace thalweg::tools

int main(int argc, char** argv) {
  // Asks what running steps do (tools/interrupt.h); where none run yet, or any more, there is nothing to say, and no reason to end.
  std::signal(SIGUSR1, SIG_IGN);
  return thalweg::tools::Main(std::vector<std::string>(argv + (argc > 0), argv + argc));
}
