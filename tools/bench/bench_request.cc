#include "thalweg/tools/bench/bench_request.h"

#include <algorithm>
#include <iterator>

#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/session_flags.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

constexpr int64_t kDefaultDurationNanos = 3'000'000'000;
constexpr int64_t kMaxRuns = 1'000'000'000'000;
constexpr int64_t kMaxConcurrency = 1024;
constexpr double kMaxRate = 1e8;

absl::Status ReadShapes(const Arguments& arguments, BenchRequest* request) {
  for (const std::string& text : arguments.All("shapes")) {
    absl::StatusOr<std::vector<ShapeSet>> sets = ParseShapeSets(text);
    if (!sets.ok()) return ForFlag("shapes", sets.status());
    request->shape_sets.insert(request->shape_sets.end(), sets->begin(), sets->end());
  }
  for (const std::string& text : arguments.All("sweep")) {
    absl::StatusOr<Sweep> sweep = ParseSweep(text);
    if (!sweep.ok()) return ForFlag("sweep", sweep.status());
    request->sweeps.push_back(*std::move(sweep));
  }
  return absl::OkStatus();
}

}  // namespace

void AppendBenchFlags(std::vector<FlagSpec>* flags) {
  AppendStepFlags(flags);
  const FlagSpec own[] = {
      {FlagKind::kRepeated, "shapes", "", "x=1x8;x=4x8", "sets of shapes, a row for each; x=1x8,y=1 is one set"},
      {FlagKind::kRepeated, "sweep", "", "batch=1,8", "a row per size of the open leading dimensions, or of one: x.1=16,32"},
      {FlagKind::kValue, "runs", "n", "RUNS", "this many runs"},
      {FlagKind::kValue, "duration", "", "10s", "for this time (default 3s)"},
      {FlagKind::kValue, "until-stable", "", "2%", "until medians of a second agree within this, at most 60s"},
      {FlagKind::kValue, "warmup", "", "N", "runs before measuring (default 10)"},
      {FlagKind::kValue, "threads", "", "1,2", "compute threads; a row for each (default: one per core)"},
      {FlagKind::kValue, "concurrency", "", "1,4", "callers at the same time; a row for each (default 1)"},
      {FlagKind::kValue, "rate", "", "100,200", "begin this many steps per second, whether or not others have ended"},
      {FlagKind::kValue, "percentiles", "", "50,99.9", "percentiles to report (default 50,90,95,99)"},
  };
  flags->insert(flags->end(), std::begin(own), std::end(own));
}

absl::Status ReadBenchRequest(const Arguments& arguments, BenchRequest* request) {
  THALWEG_RETURN_IF_ERROR(ReadStepFlags(arguments, &request->step));
  THALWEG_RETURN_IF_ERROR(ReadShapes(arguments, request));
  const auto count = [](absl::string_view text) { return ParseInteger(text, 1, kMaxRuns); };
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "runs", &request->runs, count));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "duration", &request->duration_nanos, &ParseNanos));
  if (arguments.Has("duration") && request->duration_nanos == 0)
    return absl::InvalidArgumentError("--duration: it must be more than 0");
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "until-stable", &request->stable_within, &ParseFraction));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "warmup", &request->warmup,
                                   [](absl::string_view text) { return ParseInteger(text, 0, kMaxRuns); }));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "concurrency", &request->concurrency,
                                   [](absl::string_view text) { return ParseIntegerList(text, 1, kMaxConcurrency); }));
  THALWEG_RETURN_IF_ERROR(
      ReadFlag(arguments, "rate", &request->rates, [](absl::string_view text) { return ParseNumberList(text, kMaxRate); }));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "percentiles", &request->percentiles,
                                   [](absl::string_view text) { return ParseNumberList(text, 100); }));
  std::sort(request->percentiles.begin(), request->percentiles.end());
  request->percentiles.erase(std::unique(request->percentiles.begin(), request->percentiles.end()),
                             request->percentiles.end());
  THALWEG_ASSIGN_OR_RETURN(request->threads, ReadThreadCounts(arguments));
  if ((request->runs > 0) + (request->duration_nanos > 0) + (request->stable_within > 0) > 1) {
    return absl::InvalidArgumentError("-n, --duration and --until-stable exclude each other: give one");
  }
  if (request->runs == 0 && request->duration_nanos == 0 && request->stable_within == 0)
    request->duration_nanos = kDefaultDurationNanos;
  return absl::OkStatus();
}

}  // namespace thalweg::tools
