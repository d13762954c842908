#include "thalweg/tools/bench/bench_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/session_json.h"

namespace thalweg::tools {
namespace {

// "p50", "p99.9".
std::string PercentileName(double percentile) { return absl::StrCat("p", percentile); }

int64_t At(const LatencyHistogram& latency, double percentile) { return latency.Percentile(percentile / 100); }

OrderedJson LatencyJson(const LatencyHistogram& l, const std::vector<double>& percentiles) {
  OrderedJson json = {{"min", l.min()}, {"mean", l.mean()}};
  for (const double p : percentiles) json[PercentileName(p)] = At(l, p);
  json["max"] = l.max();
  return json;
}

OrderedJson RowJson(const BenchRequest& request, const BenchRow& row) {
  OrderedJson json = {{"threads", row.threads}, {"concurrency", row.concurrency}, {"runs", row.latency.count()}};
  json["shapes"] = row.shapes;
  json["inputs"] = OrderedJson::object();
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const absl::Span<const int64_t> dims = row.inputs[i].shape().dims();
    json["inputs"][row.input_names[i]] = {{"dtype", DTypeName(row.inputs[i].dtype())},
                                          {"shape", std::vector<int64_t>(dims.begin(), dims.end())}};
  }
  json["rate_per_s"] = row.rate;
  json["latency_ns"] = LatencyJson(row.latency, request.percentiles);
  if (row.rate > 0) {
    json["waiting_ns"] = LatencyJson(row.waiting, request.percentiles);
    json["execution_ns"] = LatencyJson(row.execution, request.percentiles);
    json["rate_held"] = row.rate_held();
  }
  json["throughput_per_s"] = row.throughput();
  if (row.batch > 0) json["items_per_s"] = row.throughput() * static_cast<double>(row.batch);
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

OrderedJson ConfigJson(const BenchRequest& request) {
  OrderedJson json = {{"graph", request.step.graph}};
  json.update(SessionOptionsJson(request.step.session));
  json.erase("threads");  // a column of the rows
  json["inputs"] = request.step.input_texts;
  json["fetches"] = request.step.fetches;
  json["targets"] = request.step.targets;
  json["init"] = request.step.init;
  json["warmup"] = request.warmup;
  json["runs"] = request.runs;
  json["duration_ns"] = request.duration_nanos;
  json["stable_within"] = request.stable_within;
  json["rates_per_s"] = request.rates;
  json["percentiles"] = request.percentiles;
  json["shapes"] = OrderedJson::array();
  for (const ShapeSet& set : request.shape_sets) json["shapes"].push_back(set.text);
  json["sweeps"] = OrderedJson::object();
  for (const Sweep& sweep : request.sweeps) json["sweeps"][sweep.name] = sweep.sizes;
  return json;
}

// The table has no room for the default's p95.
std::vector<double> PercentilesOfTable(const BenchRequest& request) {
  std::vector<double> shown = request.percentiles;
  if (shown == BenchRequest().percentiles) shown.erase(std::find(shown.begin(), shown.end(), 95));
  return shown;
}

std::string Time(int64_t nanos) { return FormatNanos(static_cast<double>(nanos)); }

}  // namespace

std::vector<BenchFigure> BenchFigures(const BenchRequest& request) {
  std::vector<BenchFigure> figures = {
      {"min", FigureUnit::kNanos, [](const BenchRow& r) { return r.latency.min(); }},
      {"mean", FigureUnit::kNanos, [](const BenchRow& r) { return r.latency.mean(); }},
      {"max", FigureUnit::kNanos, [](const BenchRow& r) { return r.latency.max(); }},
      {"throughput_per_s", FigureUnit::kNumber, [](const BenchRow& r) { return r.throughput(); }},
      {"load", FigureUnit::kNanos, [](const BenchRow& r) { return r.load_nanos; }},
      {"place", FigureUnit::kNanos, [](const BenchRow& r) { return r.info.place_nanos; }},
      {"compile", FigureUnit::kNanos, [](const BenchRow& r) { return r.info.compile_nanos; }},
      {"first_run", FigureUnit::kNanos, [](const BenchRow& r) { return r.first_run_nanos; }},
      {"peak_rss", FigureUnit::kBytes, [](const BenchRow& r) { return r.peak_rss_bytes; }},
      {"nodes_executed", FigureUnit::kNumber, [](const BenchRow& r) { return r.info.nodes; }},
      {"transfers", FigureUnit::kNumber, [](const BenchRow& r) { return r.info.transfers; }},
  };
  const bool has_rate = std::any_of(request.rates.begin(), request.rates.end(), [](double rate) { return rate > 0; });
  for (const double p : request.percentiles) {
    figures.push_back({PercentileName(p), FigureUnit::kNanos, [p](const BenchRow& r) { return At(r.latency, p); }});
    if (!has_rate) continue;
    figures.push_back({absl::StrCat("waiting_", PercentileName(p)), FigureUnit::kNanos, [p](const BenchRow& r) { return At(r.waiting, p); }});
    figures.push_back({absl::StrCat("execution_", PercentileName(p)), FigureUnit::kNanos, [p](const BenchRow& r) { return At(r.execution, p); }});
  }
  return figures;
}

void PrintBenchJson(const BenchRequest& request, const std::vector<BenchRow>& rows, const absl::Status& status,
                    Console& console) {
  OrderedJson json = {{"schema", "thalweg.bench/1"}, {"config", ConfigJson(request)}, {"status", CodeName(status.code())}};
  if (!status.ok()) json["message"] = std::string(status.message());
  json["rows"] = OrderedJson::array();
  for (const BenchRow& row : rows) json["rows"].push_back(RowJson(request, row));
  console.Print(ToText(json));
}

void PrintBenchTable(const BenchRequest& request, const std::vector<BenchRow>& rows, Console& console) {
  const std::vector<double> percentiles = PercentilesOfTable(request);
  const bool has_shapes = !rows[0].shapes.empty(), has_batch = rows[0].batch > 0, has_rate = rows[0].rate > 0;
  std::vector<Table::Align> columns(has_shapes ? 1 : 0, Table::Align::kLeft);
  std::vector<std::string> head(columns.size(), "shapes");
  head.insert(head.end(), {"threads", "callers"});
  if (has_rate) head.push_back("rate");
  head.insert(head.end(), {"runs", "min"});
  for (const double p : percentiles) head.push_back(PercentileName(p));
  head.push_back("max");
  if (has_rate) head.push_back(absl::StrCat("waiting ", PercentileName(percentiles.back())));
  head.push_back("per second");
  if (has_batch) head.push_back("items per second");
  head.insert(head.end(), {"load", "compile"});
  columns.resize(head.size(), Table::Align::kRight);
  Table table(columns);
  table.AddRow(head);
  for (const BenchRow& row : rows) {
    std::vector<std::string> cells;
    if (has_shapes) cells.push_back(row.shapes);
    cells.insert(cells.end(), {absl::StrCat(row.threads), absl::StrCat(row.concurrency)});
    if (has_rate) cells.push_back(FormatShort(row.rate));
    cells.insert(cells.end(), {FormatCount(row.latency.count()), Time(row.latency.min())});
    for (const double p : percentiles) cells.push_back(Time(At(row.latency, p)));
    cells.push_back(Time(row.latency.max()));
    if (has_rate) cells.push_back(Time(At(row.waiting, percentiles.back())));
    cells.push_back(FormatShort(row.throughput()));
    if (has_batch) cells.push_back(FormatShort(row.throughput() * static_cast<double>(row.batch)));
    cells.insert(cells.end(), {Time(row.load_nanos), Time(row.info.place_nanos + row.info.compile_nanos)});
    table.AddRow(std::move(cells));
  }
  console.Print(table.ToString());
  const BenchRow& last = rows.back();
  console.Print(absl::StrCat(Plural(last.info.nodes, "node"), " executed per step, ", Plural(last.info.transfers, "transfer"),
                             "   first run ", Time(last.first_run_nanos), "   peak memory of the process ",
                             FormatBytes(static_cast<double>(last.peak_rss_bytes)), "\n"));
  for (const BenchRow& row : rows) {
    if (!row.stable) console.Warn(absl::StrCat(row.Name(), ": not stable within the time allowed; the machine may be busy"));
    if (!row.rate_held()) {
      console.Warn(absl::StrCat(row.Name(), ": the rate was not kept, ", FormatShort(row.throughput()),
                                " steps per second ended; ask for less, or allow more callers (--concurrency)"));
    }
  }
}

}  // namespace thalweg::tools
