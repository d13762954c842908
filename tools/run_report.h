// What `run` says about its steps: lines for people, a document for programs (--json), and their common data.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

struct FetchedValue {
  std::string name;  // as given with -f
  DType dtype = DType::kInvalid;
  Shape shape;
  Tensor tensor;  // uninitialised once its elements are not needed any more
};

struct StepOutcome {
  std::string name;
  absl::Status status;
  std::string stage;  // "run", or "load" for a graph that could not be added
  int64_t nanos = 0;
  std::vector<FetchedValue> values;
};

// The settings of a run, defaults included, as the document shows them.
struct RunConfig {
  std::string graph;
  SessionOptions session;
  int64_t timeout_nanos = 0;
  int64_t repeats = 1;
  std::vector<std::string> inputs;
  std::vector<std::string> init;
};

// One line per value: "prob:0  float32[1,10] {...}" with at most `limit` elements.
std::string ValuesText(const std::vector<FetchedValue>& values, int64_t limit);

// The document of --json. `print_limit` < 0 leaves the elements out.
std::string RunDocument(const RunConfig& config, const std::vector<StepOutcome>& steps, bool is_script,
                        int64_t print_limit, int64_t peak_memory_bytes);
// The document of a graph that could not be loaded.
std::string RefusalDocument(const RunConfig& config, const absl::Status& status);

}  // namespace thalweg::tools
