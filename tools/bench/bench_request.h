// What `thalweg bench` is asked to measure, from its flags.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "thalweg/tools/bench/shape_cases.h"
#include "thalweg/tools/command_line.h"
#include "thalweg/tools/measured_step.h"

namespace thalweg::tools {

struct BenchRequest {
  MeasuredStep step;
  int64_t warmup = 10;
  // When to stop; exactly one is not 0 once the flags are read.
  int64_t runs = 0;
  int64_t duration_nanos = 0;
  double stable_within = 0;
  // A row for every combination of these.
  std::vector<ShapeSet> shape_sets;      // --shapes; empty: those of --shape alone
  std::vector<Sweep> sweeps;             // --sweep
  std::vector<int64_t> threads;          // 0: one per core
  std::vector<int64_t> concurrency = {1};
  std::vector<double> rates = {0};       // steps per second; 0: as fast as the callers go
  std::vector<double> percentiles = {50, 90, 95, 99};  // ascending, in (0, 100]
};

// The flags of bench but those of the session and --assert.
void AppendBenchFlags(std::vector<FlagSpec>* flags);
// InvalidArgument for malformed ones and for those that exclude each other.
absl::Status ReadBenchRequest(const Arguments& arguments, BenchRequest* request);

}  // namespace thalweg::tools
