// The shapes that `thalweg bench` measures a step with, one after the other: --shapes lists whole sets, --sweep varies a
// dimension.
//
// All functions are pure. Errors: InvalidArgument says which input, and what the graph declares of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/tools/graph_view.h"
#include "thalweg/tools/measured_step.h"

namespace thalweg::tools {

struct ShapeSet {
  std::string text;  // as given: "x=1x8,y=4"
  FixedShapes shapes;
};
// "x=1x8,y=4;x=8x8,y=32": sets apart by ';', inputs by ','.
absl::StatusOr<std::vector<ShapeSet>> ParseShapeSets(absl::string_view text);

struct Sweep {
  std::string name;   // "batch", or "x.1"
  std::string input;  // "": every input whose leading dimension is open
  int dim = 0;
  std::vector<int64_t> sizes;
};
// "batch=1,8,64" (the open leading dimensions together) or "x.1=16:64:16" (one dimension of one input).
absl::StatusOr<Sweep> ParseSweep(absl::string_view text);

struct ShapeCase {
  std::string text;    // what tells it from the others: "batch=8 x.1=16"; "" if it is the only one
  FixedShapes shapes;  // of inputs that get generated values; later entries count
  int64_t batch = 0;   // of a sweep over the batch; 0: none
};
// Every set with every combination of sizes. Sets and sweeps may only name `inputs`, those with generated values.
absl::StatusOr<std::vector<ShapeCase>> MakeShapeCases(const std::vector<GeneratedInput>& inputs, const FixedShapes& base,
                                                      const std::vector<ShapeSet>& sets, const std::vector<Sweep>& sweeps);

}  // namespace thalweg::tools
