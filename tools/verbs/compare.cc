// thalweg compare A B: what changed between two profiles or two placements.
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/measured_step.h"
#include "thalweg/tools/profile_compare.h"
#include "thalweg/tools/units.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

constexpr int64_t kDefaultTop = 20;

const CommandSpec& Spec() {
  static const CommandSpec* const spec = [] {
    auto* s = new CommandSpec{"compare", "Says what changed between two profiles (profile -o) or two placements (place --out).",
                              "BEFORE AFTER", 2, 2, {}, {}};
    s->flags = {
        {FlagKind::kRepeated, "assert", "", "'step.delta<5%'",
         "exit code 4 unless it holds; metrics: step.delta, step.p50, transfers.delta, significant, moved"},
        {FlagKind::kValue, "top", "", "N", "differences shown (default 20)"},
        {FlagKind::kSwitch, "json", "", "", "for programs"},
    };
    s->examples = {"thalweg compare before.twp after.twp", "thalweg compare before.twp after.twp --assert 'step.delta<5%'",
                   "thalweg compare p0.json p1.json --assert 'moved==0'"};
    return s;
  }();
  return *spec;
}

struct Report {
  std::string text;
  OrderedJson json;
  Metrics metrics;
};

absl::StatusOr<nlohmann::json> ReadDocument(const std::string& path) {
  THALWEG_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  return ParseJson(file.bytes, path);
}

absl::StatusOr<Report> Compare(const std::string& before, const std::string& after, size_t top) {
  THALWEG_ASSIGN_OR_RETURN(const nlohmann::json a, ReadDocument(before));
  THALWEG_ASSIGN_OR_RETURN(const nlohmann::json b, ReadDocument(after));
  const bool placements = a.is_object() && a.contains("schema") && a["schema"].is_string() &&
                          absl::StartsWith(a["schema"].get<std::string>(), "thalweg.placement/");
  if (placements) {
    THALWEG_ASSIGN_OR_RETURN(const PlacementComparison c, ComparePlacements(a, b));
    return Report{PlacementComparisonText(c, top), PlacementComparisonJson(c), {{"moved", static_cast<double>(c.moves.size())}}};
  }
  THALWEG_ASSIGN_OR_RETURN(const ProfileComparison c, CompareProfiles(a, b));
  return Report{ComparisonText(c, top), ComparisonJson(c), c.metrics()};
}

int Run(const Arguments& arguments, Console& console) {
  std::vector<Assertion> assertions;
  for (const std::string& text : arguments.All("assert")) {
    absl::StatusOr<Assertion> assertion = ParseAssertion(text);
    if (!assertion.ok()) return console.Fail({assertion.status(), kExitUsage, "thalweg help compare"});
    assertions.push_back(*std::move(assertion));
  }
  int64_t top = kDefaultTop;
  const absl::Status flags =
      ReadFlag(arguments, "top", &top, [](absl::string_view text) { return ParseInteger(text, 1, INT32_MAX); });
  if (!flags.ok()) return console.Fail({flags, kExitUsage, "thalweg help compare"});
  const absl::StatusOr<Report> report =
      Compare(arguments.positional()[0], arguments.positional()[1], static_cast<size_t>(top));
  if (!report.ok()) return console.Fail({report.status(), kExitUsage, "thalweg help compare"});
  console.Print(arguments.Has("json") ? ToText(report->json) : report->text);
  const absl::StatusOr<std::vector<std::string>> failures = CheckAssertions(assertions, report->metrics);
  if (!failures.ok()) return console.Fail({failures.status(), kExitUsage, "thalweg help compare"});
  for (const std::string& failure : *failures) {
    console.Fail({absl::FailedPreconditionError(failure), kExitCompareFailed, "thalweg help compare"});
  }
  return failures->empty() ? kExitOk : kExitCompareFailed;
}

}  // namespace

const Verb kCompareVerb{&Spec, &Run};

}  // namespace thalweg::tools
