// thalweg run GRAPH: one step, or a script of steps, in a session.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/runtime/session.h"
#include "thalweg/runtime/trace.h"
#include "thalweg/tools/advice.h"
#include "thalweg/tools/archive.h"
#include "thalweg/tools/compare.h"
#include "thalweg/tools/dump.h"
#include "thalweg/tools/feeds.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/interrupt.h"
#include "thalweg/tools/open_session.h"
#include "thalweg/tools/run_report.h"
#include "thalweg/tools/script.h"
#include "thalweg/tools/session_flags.h"
#include "thalweg/tools/units.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDefaultPrinted = 10;
constexpr size_t kMostListed = 8;  // outputs of a node
constexpr int64_t kMaxRepeats = 1'000'000'000;

const CommandSpec& Spec() {
  static const CommandSpec* const spec = [] {
    auto* s =
        new CommandSpec{"run", "Runs steps of a graph and saves or prints what is fetched.", "GRAPH", 1, 1, {}, {}};
    s->flags = {
        {FlagKind::kRepeated, "input", "i", "NAME=VALUE",
         "feed a tensor: x=@x.npy, x=3.5, x=rand:f32:8x128~1, @all.npz (help inputs)"},
        {FlagKind::kRepeated, "fetch", "f", "TENSOR", "fetch this tensor: NODE or NODE:PORT"},
        {FlagKind::kRepeated, "target", "", "NODE", "run this node, fetch nothing of it"},
        {FlagKind::kRepeated, "init", "", "NODE", "run this node first, once: an initialiser of variables, say"},
        {FlagKind::kValue, "output", "o", "out.npz", "save what is fetched (.npz, or .npy for one value)"},
        {FlagKind::kOptionalValue, "print", "", "N", "print what is fetched, N elements each (default without -o)"},
        {FlagKind::kSwitch, "json", "", "", "a report for programs on stdout"},
        {FlagKind::kValue, "script", "", "s.json", "several steps in one session (help scripts)"},
        {FlagKind::kValue, "fill", "", "rand~SEED", "feed the placeholders left over with generated values"},
        {FlagKind::kRepeated, "shape", "", "NAME=1x8", "the shape of a placeholder that --fill feeds"},
        {FlagKind::kValue, "threads", "", "N", "compute threads in all (default: one per core)"},
        {FlagKind::kValue, "timeout", "", "5s", "cancel the step after this time (exit code 6)"},
        {FlagKind::kValue, "steps", "", "N", "run the step N times; values are those of the last"},
        {FlagKind::kValue, "expect", "", "ref.npz", "compare what is fetched with this; exit code 4 if it differs"},
        {FlagKind::kRepeated, "tol", "", "f32=1e-5", "tolerance of --expect: TYPE=RELATIVE[:ABSOLUTE],..."},
        {FlagKind::kValue, "trace", "", "t.json", "record the last step for ui.perfetto.dev"},
        {FlagKind::kRepeated, "dump", "", "RE=FOLDER", "save every value of the nodes that match as .npy files"},
        {FlagKind::kOptionalValue, "check-numerics", "", "nan",
         "fail at the first node that makes a NaN or Inf (=nan: a NaN); no node is rewritten"},
        {FlagKind::kValue, "tags", "", "LIST", "of a SavedModel (not loaded by this version)"},
        {FlagKind::kValue, "signature", "", "NAME", "of a SavedModel (not loaded by this version)"},
        {FlagKind::kSwitch, "quiet", "q", "", "no notes on stderr"},
    };
    AppendSessionFlags(&s->flags);
    s->examples = {
        "thalweg run model.pb -i image=@cat.png:f32,nhwc,0..1 -f prob",
        "thalweg run model.pb -i @in.npz -f prob -f logits -o out.npz --timeout 5s --threads 2",
        "thalweg run model.pb -i x=rand:f32:8x128~1 -f y --expect ref.npz --tol f32=1e-4 --trace t.json",
    };
    return s;
  }();
  return *spec;
}

// Everything the command line asks for.
struct Request {
  std::string graph;
  SessionOptions session;
  std::vector<InputSpec> inputs;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::vector<std::string> init;  // targets of steps before the first, in this order
  std::optional<FillRequest> fill;
  int64_t timeout_nanos = 0;
  int64_t repeats = 1;
  std::optional<Script> script;
  std::string output;
  std::string expect;
  Tolerances tolerances;
  std::string trace;
  std::vector<DumpRequest> dumps;
  bool json = false;
  int64_t print_limit = -1;  // -1: print no elements
};

absl::StatusOr<NumericsCheck> ReadNumericsCheck(const Arguments& arguments) {
  const auto what = arguments.Value("check-numerics");
  if (!what) return NumericsCheck::kOff;
  if (what->empty()) return NumericsCheck::kNaNAndInf;
  if (*what == "nan") return NumericsCheck::kNaN;
  return ForFlag("check-numerics", absl::InvalidArgumentError(absl::StrCat(
                                       "'", *what, "' is not nan; without a value it finds infinities too")));
}

absl::Status ReadQuantities(const Arguments& arguments, Request* request) {
  if (const auto text = arguments.Value("timeout")) {
    const absl::StatusOr<int64_t> nanos = ParseNanos(*text);
    if (!nanos.ok()) return ForFlag("timeout", nanos.status());
    request->timeout_nanos = *nanos;
  }
  if (const auto text = arguments.Value("steps")) {
    const absl::StatusOr<int64_t> steps = ParseInteger(*text, 1, kMaxRepeats);
    if (!steps.ok()) return ForFlag("steps", steps.status());
    request->repeats = *steps;
  }
  request->print_limit = !request->json && request->output.empty() ? kDefaultPrinted : -1;
  if (const auto text = arguments.Value("print")) {
    const absl::StatusOr<int64_t> limit = text->empty() ? kDefaultPrinted : ParseInteger(*text, 0, INT64_MAX);
    if (!limit.ok()) return ForFlag("print", limit.status());
    request->print_limit = *limit;
  }
  return absl::OkStatus();
}

absl::Status ReadStepFlags(const Arguments& arguments, Request* request) {
  THALWEG_ASSIGN_OR_RETURN(request->inputs, ParseInputFlags(arguments.All("input")));
  request->fetches = arguments.All("fetch");
  request->targets = arguments.All("target");
  request->init = arguments.All("init");
  if (const auto value = arguments.Value("fill")) {
    THALWEG_RETURN_IF_ERROR(ForFlag("fill", ParseInputValue("placeholder", *value).status()));
    request->fill.emplace();
    request->fill->value = *value;
    THALWEG_ASSIGN_OR_RETURN(request->fill->fixed, ReadFixedShapes(arguments));
  } else if (arguments.Has("shape")) {
    return absl::InvalidArgumentError("--shape says which shape --fill makes; without --fill it has no meaning");
  }
  for (const std::string& text : arguments.All("dump")) {
    THALWEG_ASSIGN_OR_RETURN(DumpRequest dump, ParseDump(text));
    request->dumps.push_back(std::move(dump));
  }
  if (const auto path = arguments.Value("script")) {
    for (const char* flag : {"input", "fetch", "target", "init", "fill", "steps", "dump"}) {
      if (arguments.Has(flag))
        return absl::InvalidArgumentError(
            absl::StrCat("--", flag, " and --script exclude each other: the script says it"));
    }
    THALWEG_ASSIGN_OR_RETURN(request->script, ReadScript(*path));
  } else if (request->fetches.empty() && request->targets.empty()) {
    return absl::InvalidArgumentError("nothing to run: give -f TENSOR to fetch or --target NODE to run");
  }
  return absl::OkStatus();
}

absl::Status ReadRequest(const Arguments& arguments, Request* request) {
  request->graph = arguments.positional()[0];
  request->json = arguments.Has("json");
  request->output = arguments.ValueOr("output", "");
  request->expect = arguments.ValueOr("expect", "");
  request->trace = arguments.ValueOr("trace", "");
  THALWEG_RETURN_IF_ERROR(ReadQuantities(arguments, request));
  for (const std::string& text : arguments.All("tol"))
    THALWEG_RETURN_IF_ERROR(ForFlag("tol", request->tolerances.Read(text)));
  if (arguments.Has("tol") && request->expect.empty())
    return absl::InvalidArgumentError("--tol is the tolerance of --expect, which is missing");
  return ReadStepFlags(arguments, request);
}

// Runs the steps of a request; keeps what the end of the program needs.
class Runner {
 public:
  Runner(const Request& request, Console& console) : request_(request), console_(console) {}

  int Run() {
    if (!OpenFiles()) return exit_code_;
    if (const Failure failure = Open(); !failure.status.ok()) {
      if (request_.json && failure.exit_code != kExitUsage) console_.Print(RefusalDocument(Config(), failure.status));
      return console_.Fail(failure);
    }
    WarnOfRequests();
    if (request_.script) RunScript();
    else RunSingle();
    return Finish();
  }

 private:
  // Output files are created before anything runs, so that a step is not lost to a mistyped path.
  bool OpenFiles() {
    if (!request_.output.empty()) {
      absl::StatusOr<std::unique_ptr<TensorWriter>> writer = TensorWriter::Create(request_.output);
      if (!writer.ok()) return Fail({writer.status(), kExitUsage, "thalweg help run"});
      writer_ = *std::move(writer);
    }
    if (!request_.trace.empty()) {
      if (absl::Status status = CheckCanWrite(request_.trace); !status.ok())
        return Fail({ForFlag("trace", status), kExitUsage, "thalweg help run"});
    }
    for (const DumpRequest& dump : request_.dumps) {
      if (absl::Status status = MakeDumpFolder(dump.folder); !status.ok())
        return Fail({ForFlag("dump", status), kExitUsage, "thalweg help run"});
    }
    if (!request_.expect.empty()) {
      absl::StatusOr<TensorArchive> reference = TensorArchive::Open(request_.expect);
      if (!reference.ok()) return Fail({ForFlag("expect", reference.status()), kExitUsage, "thalweg help run"});
      reference_ = *std::move(reference);
    }
    return true;
  }

  // OK if there is a session now.
  Failure Open() {
    const Progress progress(console_, absl::StrCat("loading ", request_.graph));
    OpenedSession opened = OpenSession(request_.graph, request_.session);
    session_ = std::move(opened.session);
    return opened.failure;
  }

  // What the command line says of nodes that are not there is passed over, but not in silence.
  void WarnOfRequests() {
    const auto warn_of_blanks = [this](absl::string_view flag, const std::string& name) {
      if (absl::StripAsciiWhitespace(name) != name)
        console_.Warn(absl::StrCat(flag, " '", name, "' has white space around the name, which was left out"));
    };
    for (const InputSpec& input : request_.inputs) warn_of_blanks("-i", input.name);
    for (const std::string& name : request_.fetches) warn_of_blanks("-f", name);
    for (const std::string& name : request_.targets) warn_of_blanks("--target", name);
    for (const std::string& name : request_.init) warn_of_blanks("--init", name);
    for (const InputSpec& input : request_.inputs) NoteOutputs("-i", input.name);
    for (const std::string& name : request_.fetches) NoteOutputs("-f", name);
    if (request_.session.pins.empty() && request_.session.placement_file.empty()) return;
    const absl::StatusOr<std::unique_ptr<GraphView>> view = OpenGraph(request_.graph);
    if (!view.ok()) return;
    for (const std::string& line : RequestsWithoutNodes(request_.session, (*view)->graph())) console_.Warn(line);
  }

  // A name without a port means output 0; where there are others, which could be meant too, it says so.
  void NoteOutputs(absl::string_view flag, const std::string& name) {
    if (absl::StrContains(name, ':')) return;
    std::vector<std::string> outputs;
    for (size_t port = 0; port < kMostListed; ++port) {
      const std::string output = absl::StrCat(name, ":", port);
      const absl::StatusOr<Session::TensorInfo> info = session_->Describe(output);
      if (!info.ok()) break;
      outputs.push_back(absl::StrCat(output, " (", DTypeName(info->dtype), ")"));
    }
    if (outputs.size() < 2) return;
    console_.Note(absl::StrCat(flag, " ", name, " is ", name, ":0; the node's outputs are ", absl::StrJoin(outputs, ", "),
                               outputs.size() == kMostListed ? " ..." : ""));
  }

  // ---- a single step, perhaps repeated

  void RunSingle() {
    StepOutcome outcome;
    outcome.stage = "run";
    Feeds feeds;
    std::vector<std::string> fetches = request_.fetches;
    outcome.status = PrepareSingle(&feeds, &fetches);
    if (outcome.status.ok()) outcome.status = Initialise(feeds);
    const Progress progress(console_, "running");
    for (int64_t i = 0; outcome.status.ok() && i < request_.repeats; ++i) {
      RunStep(feeds, fetches, request_.targets, request_.timeout_nanos, i + 1 == request_.repeats, &outcome);
    }
    if (outcome.status.ok()) outcome.status = TakeDumps(&outcome);
    Record(std::move(outcome), "");
  }

  absl::Status PrepareSingle(Feeds* feeds, std::vector<std::string>* fetches) {
    absl::StatusOr<Feeds> built = BuildFeeds(*session_, request_.inputs);
    if (!built.ok()) {
      // The file is at fault, or what is in it does not fit the graph.
      if (!absl::IsInvalidArgument(built.status()) && !absl::IsResourceExhausted(built.status())) failed_input_ = true;
      return built.status();
    }
    *feeds = *std::move(built);
    if (!request_.fill && request_.dumps.empty()) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(const std::unique_ptr<GraphView> view, OpenGraph(request_.graph));
    if (request_.fill) {
      std::vector<std::string> targets = request_.init;
      targets.insert(targets.end(), request_.targets.begin(), request_.targets.end());
      THALWEG_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                               FillPlaceholders(*view, *request_.fill, request_.fetches, targets, feeds));
      for (const std::string& line : lines) console_.Note(absl::StrCat("filled ", line));
    }
    if (!request_.dumps.empty()) {
      THALWEG_ASSIGN_OR_RETURN(dump_,
                               SelectDumps(view->graph(), request_.dumps, *feeds, request_.fetches, request_.targets));
      for (const std::string& line : dump_.skipped) console_.Note(line);
      for (const DumpSelection::Item& item : dump_.items) fetches->push_back(item.tensor);
    }
    return absl::OkStatus();
  }

  absl::Status Initialise(const Feeds& feeds) {
    for (const std::string& node : request_.init) {
      StepOutcome outcome;
      RunStep(feeds, {}, {node}, request_.timeout_nanos, /*last=*/false, &outcome);
      if (!outcome.status.ok()) return ForFlag("init", outcome.status);
    }
    return absl::OkStatus();
  }

  absl::Status TakeDumps(StepOutcome* outcome) {
    for (size_t i = 0; i < dump_.items.size(); ++i) {
      THALWEG_RETURN_IF_ERROR(WriteDump(dump_.items[i], outcome->values[request_.fetches.size() + i].tensor));
    }
    outcome->values.resize(std::min(outcome->values.size(), request_.fetches.size()));
    return absl::OkStatus();
  }

  // ---- a script

  void RunScript() {
    const std::vector<ScriptStep>& steps = request_.script->steps;
    for (const std::string& key : request_.script->unknown_keys)
      console_.Warn(absl::StrCat("unknown key in ", key, " is passed over"));
    for (size_t k = 0; k < steps.size() && !interrupts_.interrupted(); ++k) {
      const Progress progress(console_, absl::StrCat("step ", k, " of ", steps.size()));
      StepOutcome outcome;
      outcome.name = steps[k].name;
      outcome.stage = "run";
      outcome.status = PrepareScriptStep(steps[k], &outcome.stage);
      if (outcome.status.ok() && steps[k].runs()) RunScriptStep(steps[k], k + 1 == steps.size(), &outcome);
      Record(std::move(outcome), absl::StrCat("#", k));
    }
  }

  // New session, closing, extending. `stage` becomes "load" if a graph is at fault.
  absl::Status PrepareScriptStep(const ScriptStep& step, std::string* stage) {
    if (step.new_session) {
      session_.reset();
      if (const Failure failure = Open(); !failure.status.ok()) return failure.status;
    }
    if (session_ == nullptr)
      return absl::FailedPreconditionError("there is no session: making a new one failed in an earlier step");
    if (step.close) THALWEG_RETURN_IF_ERROR(session_->Close());
    if (step.extend.empty()) return absl::OkStatus();
    const absl::Status status = session_->ExtendFromFile(step.extend);
    if (!status.ok()) *stage = "load";
    return status;
  }

  void RunScriptStep(const ScriptStep& step, bool last, StepOutcome* outcome) {
    Feeds feeds;
    if (!step.inputs.empty()) {
      absl::StatusOr<Feeds> built = FeedsFromArchive(*session_, step.inputs);
      outcome->status = built.status();
      if (!built.ok()) return;
      feeds = *std::move(built);
    }
    RunStep(feeds, step.fetches, step.targets, step.timeout_nanos.value_or(request_.timeout_nanos), last, outcome);
  }

  // ---- one step of either kind

  void RunStep(const Feeds& feeds, const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
               int64_t timeout_nanos, bool last, StepOutcome* outcome) {
    RunOptions options;
    options.timeout = std::chrono::nanoseconds(timeout_nanos);
    if (last && !request_.trace.empty()) options.trace = &trace_;
    Cancellation cancellation;
    std::optional<ScopedWatch> watch(std::in_place, interrupts_, &cancellation, session_.get());
    const Clock::time_point start = Clock::now();
    absl::StatusOr<std::vector<Tensor>> values = session_->Run(feeds, fetches, targets, options, &cancellation);
    outcome->nanos = std::chrono::nanoseconds(Clock::now() - start).count();
    watch.reset();
    outcome->status = values.status();
    outcome->values.clear();
    for (size_t i = 0; values.ok() && i < values->size(); ++i) {
      Tensor& value = (*values)[i];
      outcome->values.push_back({fetches[i], value.dtype(), value.shape(), std::move(value)});
    }
  }

  // Saves, compares and prints the values of a step; keeps its outcome for the report.
  void Record(StepOutcome outcome, const std::string& suffix) {
    if (outcome.status.ok()) outcome.status = Save(outcome, suffix);
    if (!outcome.status.ok()) return RecordFailure(std::move(outcome), suffix);
    Compare(outcome, suffix);
    if (!request_.json && request_.print_limit >= 0) console_.Print(ValuesText(outcome.values, request_.print_limit));
    if (!request_.json || request_.print_limit < 0) DropElements(&outcome);
    outcomes_.push_back(std::move(outcome));
  }

  void RecordFailure(StepOutcome outcome, const std::string& suffix) {
    ExitCode code = request_.script ? kExitRunFailed : ExitCodeOfRun(outcome.status);
    if (!AnyStepRan() && LacksDevice(outcome.status)) code = kExitDeviceMissing;
    if (failed_input_) code = kExitUsage;
    if (interrupts_.interrupted()) code = kExitInterrupted;
    Failure failure{outcome.status, code, AdviceForStep("run", request_.graph, outcome.status)};
    if (failed_input_) failure.next = "thalweg help inputs";
    if (!suffix.empty())
      failure.status =
          absl::Status(outcome.status.code(), absl::StrCat("step ", suffix.substr(1), ": ", outcome.status.message()));
    Fail(failure);
    outcome.values.clear();
    outcomes_.push_back(std::move(outcome));
  }

  bool AnyStepRan() const {
    return std::any_of(outcomes_.begin(), outcomes_.end(), [](const StepOutcome& o) { return o.status.ok(); });
  }

  absl::Status Save(const StepOutcome& outcome, const std::string& suffix) {
    if (writer_ == nullptr) return absl::OkStatus();
    for (const FetchedValue& value : outcome.values)
      THALWEG_RETURN_IF_ERROR(writer_->Add(value.name + suffix, value.tensor));
    return absl::OkStatus();
  }

  void Compare(const StepOutcome& outcome, const std::string& suffix) {
    if (!reference_) return;
    for (const FetchedValue& value : outcome.values) {
      const std::string key = ReferenceKey(*reference_, value.name, suffix);
      std::string difference = "the reference has no value of that name";
      if (!key.empty()) {
        const absl::StatusOr<NpyArray> expected = reference_->Read(key);
        difference = expected.ok() ? Difference(value.tensor, *expected, request_.tolerances)
                                   : std::string(expected.status().message());
      }
      if (difference.empty()) {
        ++equal_values_;
        continue;
      }
      Fail({absl::InvalidArgumentError(absl::StrCat(value.name, suffix, " is not as expected: ", difference)),
            kExitCompareFailed,
            absl::StrCat("thalweg run ", ShellQuote(request_.graph), " ... -f ", ShellQuote(value.name), " --print")});
    }
  }

  // What is not printed later need not be kept.
  static void DropElements(StepOutcome* outcome) {
    for (FetchedValue& value : outcome->values) value.tensor = Tensor();
  }

  // ---- the end

  int Finish() {
    if (interrupts_.interrupted()) exit_code_ = kExitInterrupted;
    if (exit_code_ == kExitDeviceMissing && AnyStepRan()) exit_code_ = kExitRunFailed;
    if (writer_ != nullptr && (exit_code_ == kExitOk || exit_code_ == kExitCompareFailed || request_.script)) {
      if (absl::Status status = writer_->Finish(); !status.ok()) Fail({status, kExitRunFailed, "df -h ."});
    }
    if (!request_.trace.empty() && trace_.tables != nullptr) {
      if (absl::Status status = trace_.WriteChromeJson(request_.trace); !status.ok())
        Fail({status, kExitRunFailed, "df -h ."});
    }
    if (reference_ && exit_code_ == kExitOk)
      console_.Note(absl::StrCat(Plural(equal_values_, "value"), " as expected"));
    if (request_.json) {
      const int64_t peak = session_ == nullptr ? 0 : session_->peak_memory_bytes();
      console_.Print(RunDocument(Config(), outcomes_, request_.script.has_value(), request_.print_limit, peak));
    }
    return exit_code_;
  }

  RunConfig Config() const {
    RunConfig config{request_.graph, request_.session, request_.timeout_nanos, request_.repeats, {}, request_.init};
    for (const InputSpec& spec : request_.inputs)
      config.inputs.push_back(spec.name.empty() ? absl::StrCat("@", spec.path) : spec.name);
    return config;
  }

  // Prints the failure; the first one decides the exit code. Always false, for use in a return.
  bool Fail(const Failure& failure) {
    const int code = console_.Fail(failure);
    if (exit_code_ == kExitOk) exit_code_ = code;
    return false;
  }

  const Request& request_;
  Console& console_;
  InterruptGuard interrupts_;
  std::unique_ptr<TensorWriter> writer_;
  std::optional<TensorArchive> reference_;
  std::unique_ptr<Session> session_;
  Trace trace_;
  DumpSelection dump_;
  bool failed_input_ = false;
  int64_t equal_values_ = 0;
  std::vector<StepOutcome> outcomes_;
  int exit_code_ = kExitOk;
};

int Run(const Arguments& arguments, Console& console) {
  const std::string graph = ShellQuote(arguments.positional()[0]);
  if (arguments.Has("tags") || arguments.Has("signature")) {
    return console.Fail(
        {absl::UnimplementedError(
             "--tags and --signature are for SavedModels; this version loads GraphDef files (.pb, .pbtxt) only"),
         kExitGraphUnusable, absl::StrCat("thalweg inspect ", graph)});
  }
  Request request;
  if (absl::Status status = ReadRequest(arguments, &request); !status.ok()) {
    const bool nothing_to_run = absl::StartsWith(status.message(), "nothing to run");
    return console.Fail(
        {status, kExitUsage, nothing_to_run ? absl::StrCat("thalweg inspect ", graph) : "thalweg help run"});
  }
  SessionFlagsResult session = ReadSessionFlags(arguments);
  if (!session.failure.status.ok()) return console.Fail(session.failure);
  request.session = std::move(session.options);
  const absl::StatusOr<std::vector<int64_t>> threads = ReadThreadCounts(arguments);
  if (!threads.ok() || threads->size() != 1) {
    const absl::Status status = threads.ok()
                                    ? absl::InvalidArgumentError("--threads: run takes one number; bench takes a list")
                                    : threads.status();
    return console.Fail({status, kExitUsage, "thalweg help run"});
  }
  request.session.threads = static_cast<int>((*threads)[0]);
  const absl::StatusOr<NumericsCheck> check = ReadNumericsCheck(arguments);
  if (!check.ok()) return console.Fail({check.status(), kExitUsage, "thalweg help run"});
  request.session.check_numerics = *check;
  return Runner(request, console).Run();
}

}  // namespace

const Verb kRunVerb{&Spec, &Run};

}  // namespace thalweg::tools
