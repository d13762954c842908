// thalweg compare A B: what changed between two profiles or two placements.
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/assertion.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/profile_compare.h"
#include "thalweg/tools/units.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

constexpr int64_t kDefaultTop = 20;

const CommandSpec& Spec() {
  static const CommandSpec* const spec = [] {
    auto* s = new CommandSpec{"compare",
                              "Says what changed between two profiles (profile -o) or two placements (place --out).",
                              "BEFORE AFTER", 2, 2, {}, {}};
    s->flags = {
        {FlagKind::kRepeated, "assert", "", "'step.delta<5%'",
         "exit code 4 unless; step.delta, step.p50, transfers.delta, significant, moved"},
        {FlagKind::kValue, "top", "", "N", "differences shown (default 20)"},
        {FlagKind::kSwitch, "json", "", "", "for programs"},
    };
    s->examples = {"thalweg compare before.twp after.twp",
                   "thalweg compare before.twp after.twp --assert 'step.delta<5%'",
                   "thalweg compare p0.json p1.json --assert 'moved==0'"};
    return s;
  }();
  return *spec;
}

// What --assert may name, in the order of Report::figures. A comparison of placements has only `moved`.
constexpr FigureName kFigures[] = {{"step.delta", FigureUnit::kShare},
                                   {"step.p50", FigureUnit::kNanos},
                                   {"transfers.delta", FigureUnit::kNumber},
                                   {"significant", FigureUnit::kNumber},
                                   {"moved", FigureUnit::kNumber}};

struct Report {
  std::string text;
  OrderedJson json;
  std::optional<double> figures[std::size(kFigures)];
};

absl::StatusOr<nlohmann::json> ReadDocument(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(const FileContents file, ReadFile(path));
  return ParseJson(file.bytes, path);
}

absl::StatusOr<Report> Compare(const std::string& before, const std::string& after, size_t top) {
  THALWEG_ASSIGN_OR_RETURN(const nlohmann::json a, ReadDocument(before));
  THALWEG_ASSIGN_OR_RETURN(const nlohmann::json b, ReadDocument(after));
  const bool placements = a.is_object() && a.contains("schema") && a["schema"].is_string() &&
                          absl::StartsWith(a["schema"].get<std::string>(), "thalweg.placement/");
  if (placements) {
    THALWEG_ASSIGN_OR_RETURN(const PlacementComparison c, ComparePlacements(a, b));
    const double moves = static_cast<double>(c.moves.size());
    return Report{PlacementComparisonText(c, top), PlacementComparisonJson(c), {{}, {}, {}, {}, moves}};
  }
  THALWEG_ASSIGN_OR_RETURN(const ProfileComparison c, CompareProfiles(a, b));
  return Report{ComparisonText(c, top),
                ComparisonJson(c),
                {c.step_delta(), c.after_nanos, c.transfers_after - c.transfers_before,
                 static_cast<double>(c.num_significant()), {}}};
}

// The exit code: 0 if all hold.
int CheckAssertions(const std::vector<Assertion>& assertions, const Report& report, Console& console) {
  int exit_code = kExitOk;
  for (const Assertion& assertion : assertions) {
    const std::optional<double> value = report.figures[assertion.figure];
    const FigureName& figure = kFigures[assertion.figure];
    if (!value) {
      return console.Fail({absl::InvalidArgumentError(
                               absl::StrCat("--assert '", assertion.text, "': these documents have no ", figure.name)),
                           kExitUsage, "thalweg help compare"});
    }
    if (assertion.HoldsFor(*value)) continue;
    exit_code = console.Fail(
        {absl::FailedPreconditionError(absl::StrCat("--assert '", assertion.text, "' does not hold: ", figure.name,
                                                    " is ", FigureText(figure.unit, *value))),
         kExitCompareFailed, "thalweg help compare"});
  }
  return exit_code;
}

absl::Status ReadFlags(const Arguments& arguments, std::vector<Assertion>* assertions, int64_t* top) {
  for (const std::string& text : arguments.All("assert")) {
    THALWEG_ASSIGN_OR_RETURN(Assertion assertion, ParseAssertion(text, kFigures));
    assertions->push_back(std::move(assertion));
  }
  return ReadFlag(arguments, "top", top, [](absl::string_view text) { return ParseInteger(text, 1, INT32_MAX); });
}

int Run(const Arguments& arguments, Console& console) {
  std::vector<Assertion> assertions;
  int64_t top = kDefaultTop;
  if (absl::Status status = ReadFlags(arguments, &assertions, &top); !status.ok())
    return console.Fail({status, kExitUsage, "thalweg help compare"});
  const absl::StatusOr<Report> report =
      Compare(arguments.positional()[0], arguments.positional()[1], static_cast<size_t>(top));
  if (!report.ok()) return console.Fail({report.status(), kExitUsage, "thalweg help compare"});
  console.Print(arguments.Has("json") ? ToText(report->json) : report->text);
  return CheckAssertions(assertions, *report, console);
}

}  // namespace

const Verb kCompareVerb{&Spec, &Run};

}  // namespace thalweg::tools
