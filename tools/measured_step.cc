#include "thalweg/tools/measured_step.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/advice.h"
#include "thalweg/tools/archive.h"
#include "thalweg/tools/feeds.h"
#include "thalweg/tools/open_session.h"

namespace thalweg::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Whether --shape and the like say its shape.
bool ShapeIsOpen(const InputSpec& input) {
  using Source = InputSpec::Source;
  const Source s = input.source;
  return !input.shape && (s == Source::kZeros || s == Source::kOnes || s == Source::kUniform || s == Source::kNormal);
}

bool IsSameTensor(absl::string_view a, absl::string_view b) { return absl::StripSuffix(a, ":0") == absl::StripSuffix(b, ":0"); }

std::vector<InputSpec> WithShapes(std::vector<InputSpec> inputs, const FixedShapes& shapes) {
  for (InputSpec& input : inputs) {
    if (!ShapeIsOpen(input)) continue;
    for (const auto& [name, shape] : shapes) {
      if (IsSameTensor(name, input.name) && shape.IsFullyKnown()) input.shape = *shape.ToShape();
    }
  }
  return inputs;
}

// Everything after loading.
absl::Status Prepare(const MeasuredStep& step, const GraphView& view, Cancellation* cancellation, PreparedStep* prepared) {
  THALWEG_ASSIGN_OR_RETURN(Feeds feeds, BuildFeeds(*prepared->session, WithShapes(step.inputs, step.shapes)));
  const FillRequest fill{"rand~1", step.shapes, true};
  std::vector<std::string> targets = step.init;
  targets.insert(targets.end(), step.targets.begin(), step.targets.end());
  THALWEG_ASSIGN_OR_RETURN(prepared->filled, FillPlaceholders(view, fill, step.fetches, targets, &feeds));
  for (const std::string& node : step.init) {
    const absl::Status status = prepared->session->Run(feeds, {}, {node}, RunOptions(), cancellation).status();
    THALWEG_RETURN_IF_ERROR(ForFlag("init", status));
  }
  for (auto& [name, tensor] : feeds) {
    prepared->feed_names.push_back(name);
    prepared->feeds.push_back(std::move(tensor));
  }
  const Clock::time_point start = Clock::now();
  THALWEG_ASSIGN_OR_RETURN(prepared->callable, prepared->session->MakeCallable(prepared->feed_names, step.fetches, step.targets));
  std::vector<Tensor> results;
  THALWEG_RETURN_IF_ERROR(prepared->callable->RunInto(prepared->feeds, &results, RunOptions(), cancellation));
  const Callable::Info info = prepared->callable->info();
  prepared->first_run_nanos =
      std::chrono::nanoseconds(Clock::now() - start).count() - info.place_nanos - info.compile_nanos;
  return absl::OkStatus();
}

}  // namespace

void AppendStepFlags(std::vector<FlagSpec>* flags) {
  const FlagSpec shared[] = {
      {FlagKind::kRepeated, "input", "i", "NAME=VALUE",
       "feed a tensor (help inputs); placeholders left over get random values"},
      {FlagKind::kRepeated, "fetch", "f", "TENSOR", "fetch this (default: the likely outputs)"},
      {FlagKind::kRepeated, "target", "", "NODE", "run this node"},
      {FlagKind::kRepeated, "init", "", "NODE", "run this node before anything is measured: an initialiser of variables, say"},
      {FlagKind::kRepeated, "shape", "", "NAME=1x8", "shape of an input that gets random values; open sizes are 1"},
  };
  flags->insert(flags->end(), std::begin(shared), std::end(shared));
}

absl::Status ReadStepFlags(const Arguments& arguments, MeasuredStep* step) {
  step->graph = arguments.positional()[0];
  step->fetches = arguments.All("fetch");
  step->targets = arguments.All("target");
  step->init = arguments.All("init");
  step->input_texts = arguments.All("input");
  THALWEG_ASSIGN_OR_RETURN(step->inputs, ParseInputFlags(step->input_texts));
  THALWEG_ASSIGN_OR_RETURN(step->shapes, ReadFixedShapes(arguments));
  return absl::OkStatus();
}

OpenedStep OpenMeasuredStep(Console& console, MeasuredStep* step) {
  OpenedStep opened;
  const auto fail = [&opened](const absl::Status& status, ExitCode code, std::string next) {
    opened.view.reset();
    opened.failure = {status, code, std::move(next)};
    return std::move(opened);
  };
  if (absl::Status status = CheckIsGraphFile(step->graph); !status.ok()) {
    return fail(status, kExitGraphUnusable, absl::StrCat("ls ", ShellQuote(step->graph)));
  }
  absl::StatusOr<std::unique_ptr<GraphView>> view = OpenGraph(step->graph);
  const absl::Status loaded = view.ok() ? (*view)->loaded.status() : view.status();
  if (!loaded.ok()) return fail(loaded, ExitCodeOfLoad(loaded), AdviceForLoad(step->graph, loaded));
  opened.view = *std::move(view);
  if (!step->fetches.empty() || !step->targets.empty()) return opened;
  step->fetches = LikelyFetches(*opened.view->summary);
  if (step->fetches.empty()) {
    return fail(
        absl::InvalidArgumentError("this graph has no output that stands out; say what to fetch with -f TENSOR"),
        kExitUsage, absl::StrCat("thalweg inspect ", ShellQuote(step->graph), " --all"));
  }
  console.Note(absl::StrCat("fetching ", absl::StrJoin(step->fetches, ", ")));
  return opened;
}

absl::StatusOr<std::vector<GeneratedInput>> GeneratedInputs(const MeasuredStep& step, const GraphView& view) {
  std::vector<std::string> fed;
  for (const InputSpec& input : step.inputs) {
    if (input.source != InputSpec::Source::kArchive) {
      fed.push_back(input.name);
      continue;
    }
    THALWEG_ASSIGN_OR_RETURN(const TensorArchive archive, TensorArchive::Open(input.path));
    for (std::string& key : archive.keys()) fed.push_back(std::move(key));
  }
  THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> unfed, UnfedPlaceholders(view.graph(), fed, step.fetches, step.targets));
  std::vector<GeneratedInput> generated;
  for (const NodeId id : unfed) generated.push_back({std::string(view.graph().node(id).name), view.shapes.output(id, 0)});
  for (const InputSpec& input : step.inputs) {
    const absl::StatusOr<Endpoint> fed_at = view.graph().ParseEndpoint(input.name);
    if (ShapeIsOpen(input) && fed_at.ok()) generated.push_back({input.name, view.shapes.output(*fed_at)});
  }
  return generated;
}

PreparedStep PrepareStep(const MeasuredStep& step, const GraphView& view, int64_t threads, absl::string_view verb,
                         InterruptGuard& interrupts, Cancellation* cancellation) {
  PreparedStep prepared;
  SessionOptions options = step.session;
  options.threads = static_cast<int>(threads);
  OpenedSession opened = OpenSession(step.graph, options);
  prepared.failure = std::move(opened.failure);
  if (opened.session == nullptr) return prepared;
  prepared.session = std::move(opened.session);
  prepared.load_nanos = opened.load_nanos;
  prepared.watch = std::make_unique<ScopedWatch>(interrupts, cancellation, prepared.session.get());
  if (absl::Status status = Prepare(step, view, cancellation, &prepared); !status.ok()) {
    prepared.failure = StepFailure(step, verb, status);
  }
  return prepared;
}

int64_t ThreadsOf(int64_t asked) { return asked > 0 ? asked : std::max(1u, std::thread::hardware_concurrency()); }

Failure StepFailure(const MeasuredStep& step, absl::string_view verb, const absl::Status& status) {
  return {status, ExitCodeOfRun(status), AdviceForStep(verb, step.graph, status)};
}

}  // namespace thalweg::tools
