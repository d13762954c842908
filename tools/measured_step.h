// The step that bench and profile measure: which graph, session, inputs and fetches, from the flags they share to a
// prepared callable with everything it is fed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/command_line.h"
#include "thalweg/tools/graph_view.h"
#include "thalweg/tools/input_spec.h"
#include "thalweg/tools/interrupt.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

struct MeasuredStep {
  std::string graph;
  SessionOptions session;
  std::vector<std::string> input_texts;  // as written on the command line
  std::vector<InputSpec> inputs;         // of them
  std::vector<std::string> fetches;  // after OpenMeasuredStep: what is fetched if nobody said
  std::vector<std::string> targets;
  std::vector<std::string> init;  // run one by one before the first step
  FixedShapes shapes;
};

// -i, -f, --target, --init, --shape, as bench and profile take them.
void AppendStepFlags(std::vector<FlagSpec>* flags);
// Reads them and GRAPH. InvalidArgument for malformed ones.
absl::Status ReadStepFlags(const Arguments& arguments, MeasuredStep* step);

// Opens the graph and, where nothing is asked for, decides what to fetch, and says so.
struct OpenedStep {
  std::unique_ptr<GraphView> view;  // null if it failed
  Failure failure;
};
OpenedStep OpenMeasuredStep(Console& console, MeasuredStep* step);

// An input that the step needs and that gets generated values, so that its shape can be chosen: a placeholder that nobody feeds,
// or -i x=rand without a shape.
struct GeneratedInput {
  std::string name;
  PartialShape shape;  // as the graph declares it
};
// In the order of the placeholders, then of the -i flags. Errors: a fetch or target that does not exist, an unreadable archive.
absl::StatusOr<std::vector<GeneratedInput>> GeneratedInputs(const MeasuredStep& step, const GraphView& view);

struct PreparedStep {
  std::unique_ptr<Session> session;
  std::shared_ptr<Callable> callable;
  std::vector<std::string> feed_names;
  std::vector<Tensor> feeds;
  std::vector<std::string> filled;  // a line for every placeholder that got random values
  int64_t load_nanos = 0;
  int64_t first_run_nanos = 0;      // beyond preparing, which Callable::info() has
  Failure failure;
  std::unique_ptr<ScopedWatch> watch;  // as long as the session may run steps
};
// Loads, compiles and runs once with `threads` threads. `verb` is for advice after a failure; an interrupt uses `cancellation`, on this
// run and on those that the caller passes it to.
PreparedStep PrepareStep(const MeasuredStep& step, const GraphView& view, int64_t threads, absl::string_view verb,
                         InterruptGuard& interrupts, Cancellation* cancellation);

// The number of compute threads that `asked` (0: one per core) comes to.
int64_t ThreadsOf(int64_t asked);

// What a failure of this step means to the program.
Failure StepFailure(const MeasuredStep& step, absl::string_view verb, const absl::Status& status);

}  // namespace thalweg::tools
