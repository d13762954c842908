// What `thalweg bench` says: a table for people, JSON ("thalweg.bench/1") for programs, figures for --assert.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "thalweg/tools/assertion.h"
#include "thalweg/tools/bench/bench_measure.h"
#include "thalweg/tools/bench/bench_request.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {

struct BenchFigure {
  std::string name;  // "p99.9"
  FigureUnit unit;
  std::function<double(const BenchRow&)> of;
};
// What --assert may name: those of every row, and the percentiles that were asked for.
std::vector<BenchFigure> BenchFigures(const BenchRequest& request);

// `status`: why there are no more rows; OK if all are there.
void PrintBenchJson(const BenchRequest& request, const std::vector<BenchRow>& rows, const absl::Status& status,
                    Console& console);
// Only what was asked for has a column. Says on stderr which rows are not stable, or did not keep their rate.
void PrintBenchTable(const BenchRequest& request, const std::vector<BenchRow>& rows, Console& console);

}  // namespace thalweg::tools
