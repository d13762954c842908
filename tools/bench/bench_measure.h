// The runs of `thalweg bench`: callers that run a prepared step until a rule says stop, as fast as they can or at a given
// rate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/bench/bench_request.h"
#include "thalweg/tools/interrupt.h"
#include "thalweg/tools/latency.h"
#include "thalweg/tools/measured_step.h"

namespace thalweg::tools {

// One line of the result.
struct BenchRow {
  // What was measured.
  std::string shapes;  // ShapeCase::text
  int64_t batch = 0;
  std::vector<std::string> input_names;
  std::vector<Tensor> inputs;
  int64_t threads = 0;
  int64_t concurrency = 1;
  double rate = 0;  // steps per second that were to begin; 0: as fast as the callers go
  // What came out. With a rate, latency counts from the time at which the step was due, so that the steps which wait behind a
  // slow one are not passed over; it is waiting + execution.
  LatencyHistogram latency;
  LatencyHistogram waiting;
  LatencyHistogram execution;
  int64_t wall_nanos = 0;
  bool stable = true;
  int64_t load_nanos = 0;
  int64_t first_run_nanos = 0;
  Callable::Info info;
  int64_t peak_rss_bytes = 0;

  // Steps per second. With a rate never more than it: the time until the next step would have been due belongs to the row.
  double throughput() const;
  // Whether the rate was kept, to 2%.
  bool rate_held() const { return rate == 0 || throughput() >= 0.98 * rate; }
  // "threads 1, callers 2, rate 100": what tells the row from others.
  std::string Name() const;
};

// Warms up and measures into a row that says what to measure. An interrupt ends it early without error.
absl::Status MeasureRow(const BenchRequest& request, const PreparedStep& prepared, Cancellation& cancellation,
                        const InterruptGuard& interrupts, BenchRow* row);

}  // namespace thalweg::tools
