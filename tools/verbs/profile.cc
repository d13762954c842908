// thalweg profile GRAPH: where the time, the bytes and the memory of a step go.
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/interrupt.h"
#include "thalweg/tools/measured_step.h"
#include "thalweg/tools/profile_report.h"
#include "thalweg/tools/session_flags.h"
#include "thalweg/tools/session_json.h"
#include "thalweg/tools/units.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxSteps = 1'000'000;
constexpr int64_t kMaxRows = 1'000'000;

const CommandSpec& Spec() {
  static const CommandSpec* const spec = [] {
    auto* s = new CommandSpec{
        "profile", "Measures a step and says where its time, bytes and memory go.", "GRAPH", 1, 1, {}, {}};
    AppendStepFlags(&s->flags);
    const FlagSpec own[] = {
        {FlagKind::kValue, "steps", "", "N", "recorded steps; as many without recording run in between (default 50)"},
        {FlagKind::kValue, "warmup", "", "N", "steps before measuring (default 10)"},
        {FlagKind::kValue, "threads", "", "N", "compute threads (default: one per core)"},
        {FlagKind::kValue, "by", "", "op,node", "tables of op, node, scope, device, loop (default op,node)"},
        {FlagKind::kValue, "top", "", "N", "rows of a table (default 10)"},
        {FlagKind::kValue, "depth", "", "N", "name components of a scope (default 1)"},
        {FlagKind::kSwitch, "critical-path", "", "", "the nodes that the step's length hangs on"},
        {FlagKind::kSwitch, "gaps", "", "", "when devices stood still, and what for"},
        {FlagKind::kSwitch, "transfers", "", "", "every transfer with bytes, time and cause"},
        {FlagKind::kSwitch, "memory", "", "", "everything that is held at the peak"},
        {FlagKind::kValue, "output", "o", "run.twp", "save the profile for compare (JSON)"},
        {FlagKind::kValue, "chrome", "", "t.json", "the last step for ui.perfetto.dev"},
        {FlagKind::kSwitch, "json", "", "", "one document for programs"},
        {FlagKind::kSwitch, "jsonl", "", "", "one row per line for programs"},
        {FlagKind::kSwitch, "quiet", "q", "", "no notes on stderr"},
    };
    s->flags.insert(s->flags.end(), std::begin(own), std::end(own));
    AppendSessionFlags(&s->flags);
    s->examples = {"thalweg profile model.pb -f prob --by op,scope --critical-path",
                   "thalweg profile model.pb -d CPU:0,GPU:0=sim --transfers --gaps --chrome t.json",
                   "thalweg profile model.pb --steps 30 -o before.twp"};
    return s;
  }();
  return *spec;
}

struct Request {
  MeasuredStep step;
  int64_t steps = 50;
  int64_t warmup = 10;
  int64_t threads = 0;
  ProfileReportOptions report;
  std::string output;
  std::string chrome;
};

absl::StatusOr<std::vector<ProfileView>> ParseViews(absl::string_view text) {
  static constexpr std::pair<const char*, ProfileView> kViews[] = {{"op", ProfileView::kOp},
                                                                   {"node", ProfileView::kNode},
                                                                   {"scope", ProfileView::kScope},
                                                                   {"device", ProfileView::kDevice},
                                                                   {"loop", ProfileView::kLoop}};
  std::vector<ProfileView> views;
  for (absl::string_view word : absl::StrSplit(text, ',')) {
    bool known = false;
    for (const auto& [name, view] : kViews) {
      if (word != name) continue;
      views.push_back(view);
      known = true;
    }
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat("'", word, "' is no view; there are op, node, scope, device, loop"));
    }
  }
  return views;
}

absl::Status ReadRequest(const Arguments& arguments, Request* request) {
  THALWEG_RETURN_IF_ERROR(ReadStepFlags(arguments, &request->step));
  const auto between = [](int64_t low, int64_t high) {
    return [low, high](absl::string_view text) { return ParseInteger(text, low, high); };
  };
  ProfileReportOptions& report = request->report;
  report.views = {ProfileView::kOp, ProfileView::kNode};
  int64_t top = static_cast<int64_t>(report.top), depth = report.scope_depth;
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "steps", &request->steps, between(1, kMaxSteps)));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "warmup", &request->warmup, between(0, kMaxSteps)));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "by", &report.views, &ParseViews));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "top", &top, between(1, kMaxRows)));
  THALWEG_RETURN_IF_ERROR(ReadFlag(arguments, "depth", &depth, between(1, 100)));
  report.top = static_cast<size_t>(top);
  report.scope_depth = static_cast<int>(depth);
  report.critical_path = arguments.Has("critical-path");
  report.gaps = arguments.Has("gaps");
  report.transfers = arguments.Has("transfers");
  report.memory = arguments.Has("memory");
  request->output = arguments.ValueOr("output", "");
  request->chrome = arguments.ValueOr("chrome", "");
  THALWEG_ASSIGN_OR_RETURN(const std::vector<int64_t> threads, ReadThreadCounts(arguments));
  if (threads.size() != 1) return absl::InvalidArgumentError("--threads: profile takes one number; bench takes a list");
  request->threads = threads[0];
  return absl::OkStatus();
}

// Leaves the last step in `trace`, the one whose memory is recorded too.
// Recorded steps and plain ones take turns, so that both see the same machine: their difference is what recording costs. Which of a
// pair comes first changes too, because adding a recorded step to the profile leaves the caches to the step after it.
absl::Status Measure(const Request& request, const PreparedStep& prepared, Cancellation& cancellation, Trace* trace,
                     ProfileResult* result) {
  std::vector<Tensor> results;
  const auto run = [&](const RunOptions& options, int64_t* nanos) {
    const Clock::time_point start = Clock::now();
    absl::Status status = prepared.callable->RunInto(prepared.feeds, &results, options, &cancellation);
    *nanos = std::chrono::nanoseconds(Clock::now() - start).count();
    return status;
  };
  RunOptions traced;
  traced.trace = trace;
  int64_t nanos = 0;
  for (int64_t i = 0; i < request.warmup; ++i) THALWEG_RETURN_IF_ERROR(run({}, &nanos));
  if (request.warmup > 0) THALWEG_RETURN_IF_ERROR(run(traced, &nanos));  // makes the tables that traces refer to
  const auto run_plain = [&] {
    absl::Status status = run({}, &nanos);
    result->untraced_nanos.push_back(nanos);
    return status;
  };
  const auto run_recorded = [&] {
    absl::Status status = run(traced, &nanos);
    result->traced_nanos.push_back(nanos);
    return status.ok() ? result->profile.Add(*trace) : status;
  };
  for (int64_t i = 0; i < request.steps; ++i) {
    if (i % 2 == 0) THALWEG_RETURN_IF_ERROR(run_plain());
    THALWEG_RETURN_IF_ERROR(run_recorded());
    if (i % 2 == 1) THALWEG_RETURN_IF_ERROR(run_plain());
  }
  results.clear();  // so that freeing the last step's is not counted against this one
  traced.record_memory = true;
  THALWEG_RETURN_IF_ERROR(run(traced, &nanos));
  result->profile.AddMemory(*trace);
  result->has_memory = true;
  return absl::OkStatus();
}

OrderedJson ConfigJson(const Request& request, const Arguments& arguments, int threads) {
  OrderedJson json = {{"graph", request.step.graph}};
  json.update(SessionOptionsJson(request.step.session));
  json["threads"] = threads;
  json["inputs"] = request.step.input_texts;
  json["shapes"] = arguments.All("shape");
  json["fetches"] = request.step.fetches;
  json["targets"] = request.step.targets;
  json["init"] = request.step.init;
  json["steps"] = request.steps;
  json["warmup"] = request.warmup;
  return json;
}

int Report(const Request& request, const Arguments& arguments, const ProfileResult& result, const Trace& trace,
           Console& console) {
  const OrderedJson document = ProfileJson(result, ConfigJson(request, arguments, result.threads));
  if (!request.output.empty()) {
    if (absl::Status status = WriteFile(request.output, ToText(document)); !status.ok())
      return console.Fail({status, kExitRunFailed, "df -h ."});
  }
  if (!request.chrome.empty()) {
    if (absl::Status status = trace.WriteChromeJson(request.chrome); !status.ok())
      return console.Fail({status, kExitRunFailed, "df -h ."});
  }
  if (arguments.Has("json")) console.Print(ToText(document));
  else if (arguments.Has("jsonl")) console.Print(ProfileJsonLines(document));
  else console.Print(ProfileText(result, request.report));
  return kExitOk;
}

int Run(const Arguments& arguments, Console& console) {
  Request request;
  if (absl::Status status = ReadRequest(arguments, &request); !status.ok())
    return console.Fail({status, kExitUsage, "thalweg help profile"});
  SessionFlagsResult session = ReadSessionFlags(arguments);
  if (!session.failure.status.ok()) return console.Fail(session.failure);
  request.step.session = std::move(session.options);
  for (const auto& [flag, file] : {std::pair("output", request.output), std::pair("chrome", request.chrome)}) {
    if (file.empty()) continue;
    if (absl::Status status = CheckCanWrite(file); !status.ok())
      return console.Fail({ForFlag(flag, status), kExitUsage, "thalweg help profile"});
  }
  InterruptGuard interrupts;
  const OpenedStep opened = OpenMeasuredStep(console, &request.step);
  if (opened.view == nullptr) return console.Fail(opened.failure);
  Cancellation cancellation;
  const PreparedStep prepared = PrepareStep(request.step, *opened.view, request.threads, "profile", interrupts, &cancellation);
  if (!prepared.failure.status.ok()) return console.Fail(prepared.failure);
  for (const std::string& line : prepared.filled) console.Note(absl::StrCat("random input ", line));

  ProfileResult result;
  result.load_nanos = prepared.load_nanos;
  result.first_run_nanos = prepared.first_run_nanos;
  result.info = prepared.callable->info();
  result.threads = static_cast<int>(ThreadsOf(request.threads));
  Trace trace;
  {
    const Progress progress(console, "profiling");
    if (absl::Status status = Measure(request, prepared, cancellation, &trace, &result); !status.ok()) {
      Failure failure = StepFailure(request.step, "profile", status);
      if (interrupts.interrupted()) failure.exit_code = kExitInterrupted;
      return console.Fail(failure);
    }
  }
  return Report(request, arguments, result, trace, console);
}

}  // namespace

const Verb kProfileVerb{&Spec, &Run};

}  // namespace thalweg::tools
