// thalweg bench GRAPH: latency and throughput of a step, measured inside the process through a prepared callable.
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/assertion.h"
#include "thalweg/tools/bench/bench_measure.h"
#include "thalweg/tools/bench/bench_report.h"
#include "thalweg/tools/bench/bench_request.h"
#include "thalweg/tools/bench/shape_cases.h"
#include "thalweg/tools/interrupt.h"
#include "thalweg/tools/measured_step.h"
#include "thalweg/tools/memory.h"
#include "thalweg/tools/session_flags.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

const CommandSpec& Spec() {
  static const CommandSpec* const spec = [] {
    auto* s = new CommandSpec{
        "bench", "Measures latency and throughput of a step; load and compile times are figures of their own.",
        "GRAPH", 1,
        1,       {},
        {}};
    AppendBenchFlags(&s->flags);
    const FlagSpec own[] = {
        {FlagKind::kRepeated, "assert", "", "p50<2ms", "exit code 4 if a row does not keep to this; figures as in --json"},
        {FlagKind::kSwitch, "json", "", "", "for programs"},
        {FlagKind::kSwitch, "quiet", "q", "", "no notes on stderr"},
    };
    s->flags.insert(s->flags.end(), std::begin(own), std::end(own));
    AppendSessionFlags(&s->flags);
    s->examples = {"thalweg bench model.pb -f prob --threads 1,2 --sweep batch=1,8,64",
                   "thalweg bench model.pb -i image=@cat.npy -f prob --until-stable 2%",
                   "thalweg bench model.pb --rate 50,100 --concurrency 4 --percentiles 50,99,99.9 --json"};
    return s;
  }();
  return *spec;
}

absl::StatusOr<std::vector<Assertion>> ReadAssertions(const Arguments& arguments, const std::vector<BenchFigure>& figures) {
  std::vector<FigureName> names;
  for (const BenchFigure& figure : figures) names.push_back({figure.name.c_str(), figure.unit});
  std::vector<Assertion> assertions;
  for (const std::string& text : arguments.All("assert")) {
    absl::StatusOr<Assertion> assertion = ParseAssertion(text, names);
    if (!assertion.ok()) return ForFlag("assert", assertion.status());
    assertions.push_back(*std::move(assertion));
  }
  return assertions;
}

// The rows of one session: every number of callers at every rate.
Failure MeasurePrepared(const BenchRequest& request, const PreparedStep& prepared, const BenchRow& first, Console& console,
                        Cancellation& cancellation, const InterruptGuard& interrupts, std::vector<BenchRow>* rows) {
  for (const int64_t concurrency : request.concurrency) {
    for (const double rate : request.rates) {
      if (interrupts.interrupted()) return {};
      BenchRow row = first;
      row.concurrency = concurrency;
      row.rate = rate;
      const Progress progress(console, row.Name());
      if (absl::Status status = MeasureRow(request, prepared, cancellation, interrupts, &row); !status.ok())
        return StepFailure(request.step, "bench", status);
      row.peak_rss_bytes = PeakResidentBytes();
      if (row.latency.count() > 0) rows->push_back(std::move(row));
    }
  }
  return {};
}

// Says which case of several failed.
Failure OfCase(const ShapeCase& shapes, Failure failure) {
  if (shapes.text.empty()) return failure;
  failure.status = absl::Status(failure.status.code(), absl::StrCat("with ", shapes.text, ": ", failure.status.message()));
  return failure;
}

// Measures every combination, each case of shapes and number of threads in a session of its own; a failure ends it.
Failure MeasureAll(const BenchRequest& request, const std::vector<ShapeCase>& cases, const GraphView& view, Console& console,
                   InterruptGuard& interrupts, std::vector<BenchRow>* rows) {
  for (const ShapeCase& shapes : cases) {
    MeasuredStep step = request.step;
    step.shapes = shapes.shapes;
    for (const int64_t threads : request.threads) {
      if (interrupts.interrupted()) return {};
      ResetPeakResident();
      Cancellation cancellation;
      const PreparedStep prepared = PrepareStep(step, view, threads, "bench", interrupts, &cancellation);
      if (!prepared.failure.status.ok()) return OfCase(shapes, prepared.failure);
      if (threads == request.threads[0]) {
        for (const std::string& line : prepared.filled) console.Note(absl::StrCat("random input ", line));
      }
      BenchRow row;
      row.shapes = shapes.text;
      row.batch = shapes.batch;
      row.input_names = prepared.feed_names;
      row.inputs = prepared.feeds;
      row.threads = ThreadsOf(threads);
      row.load_nanos = prepared.load_nanos;
      row.first_run_nanos = prepared.first_run_nanos;
      row.info = prepared.callable->info();
      Failure failure = MeasurePrepared(request, prepared, row, console, cancellation, interrupts, rows);
      if (!failure.status.ok()) return OfCase(shapes, std::move(failure));
    }
  }
  return {};
}

// Says which rows do not keep to --assert; the exit code.
int CheckAssertions(const BenchRequest& request, const std::vector<Assertion>& assertions, const std::vector<BenchFigure>& figures,
                    const std::vector<BenchRow>& rows, Console& console) {
  int exit_code = kExitOk;
  for (const BenchRow& row : rows) {
    for (const Assertion& assertion : assertions) {
      const BenchFigure& figure = figures[assertion.figure];
      const double value = figure.of(row);
      if (assertion.HoldsFor(value)) continue;
      exit_code = console.Fail({absl::FailedPreconditionError(absl::StrCat("--assert '", assertion.text, "' does not hold with ", row.Name(),
                                                                           ": ", figure.name, " is ", FigureText(figure.unit, value))),
                                kExitCompareFailed, absl::StrCat("thalweg bench ", ShellQuote(request.step.graph), " --until-stable 2%")});
    }
  }
  return exit_code;
}

int Run(const Arguments& arguments, Console& console) {
  BenchRequest request;
  if (absl::Status status = ReadBenchRequest(arguments, &request); !status.ok())
    return console.Fail({status, kExitUsage, "thalweg help bench"});
  const std::vector<BenchFigure> figures = BenchFigures(request);
  const absl::StatusOr<std::vector<Assertion>> assertions = ReadAssertions(arguments, figures);
  if (!assertions.ok()) return console.Fail({assertions.status(), kExitUsage, "thalweg help bench"});
  SessionFlagsResult session = ReadSessionFlags(arguments);
  if (!session.failure.status.ok()) return console.Fail(session.failure);
  request.step.session = std::move(session.options);
  InterruptGuard interrupts;
  const OpenedStep opened = OpenMeasuredStep(console, &request.step);
  if (opened.view == nullptr) return console.Fail(opened.failure);
  const absl::StatusOr<std::vector<GeneratedInput>> generated = GeneratedInputs(request.step, *opened.view);
  if (!generated.ok()) return console.Fail(StepFailure(request.step, "bench", generated.status()));
  const absl::StatusOr<std::vector<ShapeCase>> cases =
      MakeShapeCases(*generated, request.step.shapes, request.shape_sets, request.sweeps);
  if (!cases.ok())
    return console.Fail({cases.status(), kExitUsage, absl::StrCat("thalweg inspect ", ShellQuote(request.step.graph))});
  std::vector<BenchRow> rows;
  const Failure failure = MeasureAll(request, *cases, *opened.view, console, interrupts, &rows);
  // Rows that were measured in full are reported whatever came after them. An interrupt is no failure of the runs that it
  // cancelled.
  const bool interrupted = interrupts.interrupted();
  const absl::Status status = interrupted ? absl::CancelledError("interrupted") : failure.status;
  if (arguments.Has("json")) PrintBenchJson(request, rows, status, console);
  else if (!rows.empty()) PrintBenchTable(request, rows, console);
  if (interrupted) return kExitInterrupted;
  if (!status.ok()) return console.Fail(failure);
  return CheckAssertions(request, *assertions, figures, rows, console);
}

}  // namespace

const Verb kBenchVerb{&Spec, &Run};

}  // namespace thalweg::tools
