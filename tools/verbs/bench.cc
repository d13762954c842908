// thalweg bench GRAPH: latency and throughput of a step, measured inside the process through a prepared callable.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/assertion.h"
#include "thalweg/tools/interrupt.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/latency.h"
#include "thalweg/tools/measured_step.h"
#include "thalweg/tools/memory.h"
#include "thalweg/tools/session_flags.h"
#include "thalweg/tools/session_json.h"
#include "thalweg/tools/units.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDefaultWarmup = 10;
constexpr int64_t kDefaultDurationNanos = 3'000'000'000;
constexpr int64_t kMaxRuns = 1'000'000'000'000;
constexpr int64_t kMaxConcurrency = 1024;
// --until-stable: medians of windows are compared; the longest that is waited for them.
constexpr int64_t kWindowNanos = 250'000'000;
constexpr int kWindows = 4;
constexpr int64_t kLongestNanos = 60'000'000'000;
// An interrupt cancels runs from this length on; shorter ones are not slowed by it, and it is seen between them.
constexpr int64_t kWorthCancellingNanos = 10'000'000;

const CommandSpec& Spec() {
  static const CommandSpec* const spec = [] {
    auto* s = new CommandSpec{
        "bench", "Measures latency and throughput of a step; load and compile times are figures of their own.",
        "GRAPH", 1,
        1,       {},
        {}};
    AppendStepFlags(&s->flags);
    const FlagSpec own[] = {
        {FlagKind::kValue, "runs", "n", "RUNS", "this many runs"},
        {FlagKind::kValue, "duration", "", "10s", "for this time (default 3s)"},
        {FlagKind::kValue, "until-stable", "", "2%", "until medians of a second agree within this, at most 60s"},
        {FlagKind::kValue, "warmup", "", "N", "runs before measuring (default 10)"},
        {FlagKind::kValue, "threads", "", "1,2", "compute threads; a row for each (default: one per core)"},
        {FlagKind::kValue, "concurrency", "", "1,4", "callers at the same time; a row for each (default 1)"},
        {FlagKind::kRepeated, "assert", "", "p50<2ms", "exit code 4 if a row does not keep to this; figures as in --json"},
        {FlagKind::kSwitch, "json", "", "", "for programs"},
        {FlagKind::kSwitch, "quiet", "q", "", "no notes on stderr"},
    };
    s->flags.insert(s->flags.end(), std::begin(own), std::end(own));
    AppendSessionFlags(&s->flags);
    s->examples = {"thalweg bench model.pb -f prob --threads 1,2",
                   "thalweg bench model.pb -i image=@cat.npy -f prob --until-stable 2%",
                   "thalweg bench model.pb --shape image=8x224x224x3 -n 1000 --json"};
    return s;
  }();
  return *spec;
}

struct Request {
  MeasuredStep step;
  int64_t warmup = kDefaultWarmup;
  int64_t runs = 0;            // 0: by time
  int64_t duration_nanos = 0;  // 0: not by time
  double stable_within = 0;    // 0: not until stable
  std::vector<int64_t> threads;
  std::vector<int64_t> concurrency;
  std::vector<Assertion> assertions;
};

struct Row {
  int64_t threads = 0;
  int64_t concurrency = 1;
  LatencyHistogram latency;
  int64_t wall_nanos = 0;
  bool stable = true;
  int64_t load_nanos = 0;
  int64_t first_run_nanos = 0;
  Callable::Info info;
  int64_t peak_rss_bytes = 0;

  double throughput() const {
    return wall_nanos > 0 ? static_cast<double>(latency.count()) * 1e9 / static_cast<double>(wall_nanos) : 0;
  }
};

// ------------------------------------------------------------------------------------------------- figures

struct Figure {
  FigureName name;
  double (*of)(const Row&);
};

template <int kPerMille>
double LatencyAt(const Row& row) {
  return static_cast<double>(row.latency.Percentile(kPerMille / 1000.0));
}

// What --assert may name.
constexpr Figure kFigures[] = {
    {{"min", FigureUnit::kNanos}, [](const Row& r) { return static_cast<double>(r.latency.min()); }},
    {{"mean", FigureUnit::kNanos}, [](const Row& r) { return static_cast<double>(r.latency.mean()); }},
    {{"p50", FigureUnit::kNanos}, &LatencyAt<500>},
    {{"p90", FigureUnit::kNanos}, &LatencyAt<900>},
    {{"p95", FigureUnit::kNanos}, &LatencyAt<950>},
    {{"p99", FigureUnit::kNanos}, &LatencyAt<990>},
    {{"max", FigureUnit::kNanos}, [](const Row& r) { return static_cast<double>(r.latency.max()); }},
    {{"throughput_per_s", FigureUnit::kNumber}, [](const Row& r) { return r.throughput(); }},
    {{"load", FigureUnit::kNanos}, [](const Row& r) { return static_cast<double>(r.load_nanos); }},
    {{"place", FigureUnit::kNanos}, [](const Row& r) { return static_cast<double>(r.info.place_nanos); }},
    {{"compile", FigureUnit::kNanos}, [](const Row& r) { return static_cast<double>(r.info.compile_nanos); }},
    {{"first_run", FigureUnit::kNanos}, [](const Row& r) { return static_cast<double>(r.first_run_nanos); }},
    {{"peak_rss", FigureUnit::kBytes}, [](const Row& r) { return static_cast<double>(r.peak_rss_bytes); }},
    {{"nodes_executed", FigureUnit::kNumber}, [](const Row& r) { return static_cast<double>(r.info.nodes); }},
    {{"transfers", FigureUnit::kNumber}, [](const Row& r) { return static_cast<double>(r.info.transfers); }},
};

std::vector<FigureName> FigureNames() {
  std::vector<FigureName> names;
  for (const Figure& figure : kFigures) names.push_back(figure.name);
  return names;
}

// ------------------------------------------------------------------------------------------------- flags

absl::Status ReadRequest(const Arguments& arguments, Request* request) {
  THALWEG_RETURN_IF_ERROR(ReadStepFlags(arguments, &request->step));
  request->concurrency = {1};
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
  THALWEG_ASSIGN_OR_RETURN(request->threads, ReadThreadCounts(arguments));
  for (const std::string& text : arguments.All("assert")) {
    absl::StatusOr<Assertion> assertion = ParseAssertion(text, FigureNames());
    if (!assertion.ok()) return ForFlag("assert", assertion.status());
    request->assertions.push_back(*std::move(assertion));
  }
  if ((request->runs > 0) + (request->duration_nanos > 0) + (request->stable_within > 0) > 1) {
    return absl::InvalidArgumentError("-n, --duration and --until-stable exclude each other: give one");
  }
  if (request->runs == 0 && request->duration_nanos == 0 && request->stable_within == 0)
    request->duration_nanos = kDefaultDurationNanos;
  return absl::OkStatus();
}

// ------------------------------------------------------------------------------------------------- measuring

// Says after every run whether there should be another; shared by all callers of a row.
class StopRule {
 public:
  StopRule(const Request& request, const InterruptGuard& interrupts)
      : request_(request), interrupts_(interrupts), window_end_(kWindowNanos) {}

  // Takes a place for a run; false if measuring is over.
  bool Begin() {
    if (over_ || interrupted()) return false;
    return request_.runs == 0 || started_.fetch_add(1) < request_.runs;
  }
  void End(int64_t latency, int64_t since_start) {
    if (request_.duration_nanos > 0 && since_start >= request_.duration_nanos) over_ = true;
    if (request_.stable_within > 0) AddToWindow(latency, since_start);
  }
  bool stable() const { return stable_; }
  bool interrupted() const { return interrupts_.interrupted(); }

 private:
  void AddToWindow(int64_t latency, int64_t since_start) {
    std::lock_guard<std::mutex> lock(mutex_);
    window_.Add(latency);
    if (since_start < window_end_) return;
    medians_.push_back(window_.Percentile(0.5));
    window_ = LatencyHistogram();
    window_end_ = since_start + kWindowNanos;
    stable_ = medians_.size() >= kWindows && Spread() <= request_.stable_within;
    if (stable_ || since_start >= kLongestNanos) over_ = true;
  }
  // How far the last medians lie apart, as a share of the smallest.
  double Spread() const {
    const auto [low, high] = std::minmax_element(medians_.end() - kWindows, medians_.end());
    return static_cast<double>(*high - *low) / static_cast<double>(std::max<int64_t>(*low, 1));
  }

  const Request& request_;
  const InterruptGuard& interrupts_;
  std::atomic<int64_t> started_{0};
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  LatencyHistogram window_;
  std::vector<int64_t> medians_;
  int64_t window_end_;
  std::atomic<bool> stable_{false};
};

// One run; long ones are cancelled by an interrupt.
absl::Status RunOnce(const PreparedStep& prepared, Cancellation& cancellation, std::vector<Tensor>* results) {
  const bool long_runs = prepared.first_run_nanos >= kWorthCancellingNanos;
  return prepared.callable->RunInto(prepared.feeds, results, RunOptions(), long_runs ? &cancellation : nullptr);
}

// One caller's loop.
absl::Status Call(const PreparedStep& prepared, Cancellation& cancellation, Clock::time_point start, StopRule& rule,
                  LatencyHistogram* latency) {
  std::vector<Tensor> results;
  while (rule.Begin()) {
    const Clock::time_point before = Clock::now();
    const absl::Status status = RunOnce(prepared, cancellation, &results);
    if (absl::IsCancelled(status) && rule.interrupted()) return absl::OkStatus();
    THALWEG_RETURN_IF_ERROR(status);
    const Clock::time_point after = Clock::now();
    const int64_t nanos = std::chrono::nanoseconds(after - before).count();
    latency->Add(nanos);
    rule.End(nanos, std::chrono::nanoseconds(after - start).count());
  }
  return absl::OkStatus();
}

absl::Status Measure(const Request& request, const PreparedStep& prepared, Cancellation& cancellation,
                     const InterruptGuard& interrupts, Row* row) {
  std::vector<Tensor> results;
  for (int64_t i = 0; i < request.warmup && !interrupts.interrupted(); ++i)
    THALWEG_RETURN_IF_ERROR(RunOnce(prepared, cancellation, &results));
  StopRule rule(request, interrupts);
  std::vector<LatencyHistogram> latencies(static_cast<size_t>(row->concurrency));
  std::vector<absl::Status> statuses(latencies.size());
  std::vector<std::thread> callers;
  const Clock::time_point start = Clock::now();
  for (size_t c = 1; c < latencies.size(); ++c) {
    callers.emplace_back([&, c] { statuses[c] = Call(prepared, cancellation, start, rule, &latencies[c]); });
  }
  statuses[0] = Call(prepared, cancellation, start, rule, &latencies[0]);
  for (std::thread& caller : callers) caller.join();
  row->wall_nanos = std::chrono::nanoseconds(Clock::now() - start).count();
  row->stable = request.stable_within == 0 || rule.stable();
  for (const LatencyHistogram& latency : latencies) row->latency.Add(latency);
  for (const absl::Status& status : statuses) THALWEG_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// ------------------------------------------------------------------------------------------------- reports

OrderedJson RowJson(const Row& row) {
  const LatencyHistogram& l = row.latency;
  OrderedJson json = {{"threads", row.threads}, {"concurrency", row.concurrency}, {"runs", l.count()}};
  json["latency_ns"] = {{"min", l.min()},
                        {"mean", l.mean()},
                        {"p50", l.Percentile(0.5)},
                        {"p90", l.Percentile(0.9)},
                        {"p95", l.Percentile(0.95)},
                        {"p99", l.Percentile(0.99)},
                        {"max", l.max()}};
  json["throughput_per_s"] = row.throughput();
  json["stable"] = row.stable;
  json["load_ns"] = row.load_nanos;
  json["place_ns"] = row.info.place_nanos;
  json["compile_ns"] = row.info.compile_nanos;
  json["first_run_ns"] = row.first_run_nanos;
  json["peak_rss_bytes"] = row.peak_rss_bytes;
  json["nodes_executed"] = row.info.nodes;
  json["transfers"] = row.info.transfers;
  return json;
}

void PrintJson(const Request& request, const std::vector<Row>& rows, Console& console) {
  OrderedJson json = {{"schema", "thalweg.bench/1"}, {"config", {{"graph", request.step.graph}}}};
  json["config"].update(SessionOptionsJson(request.step.session));
  json["config"].erase("threads");  // a column of the rows
  json["config"]["fetches"] = request.step.fetches;
  json["config"]["targets"] = request.step.targets;
  json["config"]["warmup"] = request.warmup;
  json["config"]["runs"] = request.runs;
  json["config"]["duration_ns"] = request.duration_nanos;
  json["config"]["stable_within"] = request.stable_within;
  json["rows"] = OrderedJson::array();
  for (const Row& row : rows) json["rows"].push_back(RowJson(row));
  console.Print(ToText(json));
}

void PrintTable(const std::vector<Row>& rows, Console& console) {
  constexpr auto kRight = Table::Align::kRight;
  Table table(std::vector<Table::Align>(11, kRight));
  table.AddRow({"threads", "callers", "runs", "min", "p50", "p90", "p99", "max", "per second", "load", "compile"});
  for (const Row& row : rows) {
    const LatencyHistogram& l = row.latency;
    const auto time = [](int64_t nanos) { return FormatNanos(static_cast<double>(nanos)); };
    table.AddRow({absl::StrCat(row.threads), absl::StrCat(row.concurrency), FormatCount(l.count()), time(l.min()),
                  time(l.Percentile(0.5)), time(l.Percentile(0.9)), time(l.Percentile(0.99)), time(l.max()),
                  FormatShort(row.throughput()), time(row.load_nanos),
                  time(row.info.place_nanos + row.info.compile_nanos)});
  }
  console.Print(table.ToString());
  const Row& last = rows.back();
  console.Print(absl::StrCat(Plural(last.info.nodes, "node"), " executed per step, ",
                             Plural(last.info.transfers, "transfer"), "   first run ",
                             FormatNanos(static_cast<double>(last.first_run_nanos)), "   peak memory of the process ",
                             FormatBytes(static_cast<double>(last.peak_rss_bytes)), "\n"));
  for (const Row& row : rows) {
    if (!row.stable)
      console.Warn(
          absl::StrCat("threads ", row.threads, ": not stable within the time allowed; the machine may be busy"));
  }
}

// ------------------------------------------------------------------------------------------------- the verb

// Measures every combination; a failure ends it.
Failure MeasureAll(const Request& request, const GraphView& view, Console& console, InterruptGuard& interrupts,
                   std::vector<Row>* rows) {
  for (const int64_t threads : request.threads) {
    ResetPeakResident();
    Cancellation cancellation;
    const PreparedStep prepared = PrepareStep(request.step, view, threads, "bench", interrupts, &cancellation);
    if (!prepared.failure.status.ok()) return prepared.failure;
    if (rows->empty()) {
      for (const std::string& line : prepared.filled) console.Note(absl::StrCat("random input ", line));
    }
    for (const int64_t concurrency : request.concurrency) {
      if (interrupts.interrupted()) break;
      Row row;
      row.threads = ThreadsOf(threads);
      row.load_nanos = prepared.load_nanos;
      row.first_run_nanos = prepared.first_run_nanos;
      row.info = prepared.callable->info();
      row.concurrency = concurrency;
      const Progress progress(console, absl::StrCat("threads ", row.threads, ", callers ", concurrency));
      if (absl::Status status = Measure(request, prepared, cancellation, interrupts, &row); !status.ok())
        return StepFailure(request.step, "bench", status);
      row.peak_rss_bytes = PeakResidentBytes();
      if (row.latency.count() > 0) rows->push_back(std::move(row));
    }
  }
  return {};
}

// Says which rows do not keep to --assert; the exit code.
int CheckAssertions(const Request& request, const std::vector<Row>& rows, Console& console) {
  int exit_code = kExitOk;
  for (const Row& row : rows) {
    for (const Assertion& assertion : request.assertions) {
      const Figure& figure = kFigures[assertion.figure];
      const double value = figure.of(row);
      if (assertion.HoldsFor(value)) continue;
      exit_code = console.Fail(
          {absl::FailedPreconditionError(absl::StrCat("--assert '", assertion.text, "' does not hold with threads ", row.threads,
                                                      ", callers ", row.concurrency, ": ", figure.name.name, " is ",
                                                      FigureText(figure.name.unit, value))),
           kExitCompareFailed, absl::StrCat("thalweg bench ", ShellQuote(request.step.graph), " --until-stable 2%")});
    }
  }
  return exit_code;
}

int Run(const Arguments& arguments, Console& console) {
  Request request;
  if (absl::Status status = ReadRequest(arguments, &request); !status.ok())
    return console.Fail({status, kExitUsage, "thalweg help bench"});
  SessionFlagsResult session = ReadSessionFlags(arguments);
  if (!session.failure.status.ok()) return console.Fail(session.failure);
  request.step.session = std::move(session.options);
  InterruptGuard interrupts;
  const OpenedStep opened = OpenMeasuredStep(console, &request.step);
  if (opened.view == nullptr) return console.Fail(opened.failure);
  std::vector<Row> rows;
  const Failure failure = MeasureAll(request, *opened.view, console, interrupts, &rows);
  // An interrupt is no failure of the runs that it cancelled: the rows that were measured in full are reported.
  if (!failure.status.ok() && !interrupts.interrupted()) return console.Fail(failure);
  if (arguments.Has("json")) PrintJson(request, rows, console);
  else if (!rows.empty()) PrintTable(rows, console);
  if (interrupts.interrupted()) return kExitInterrupted;
  return CheckAssertions(request, rows, console);
}

}  // namespace

const Verb kBenchVerb{&Spec, &Run};

}  // namespace thalweg::tools
