#include "thalweg/tools/profile_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

constexpr char kSchema[] = "thalweg.profile/1";
// Steps are put into so many consecutive blocks, whose medians `compare` works on.
constexpr size_t kBlocks = 10;
// Totals further off than this make a profile invalid.
constexpr double kClosureTolerance = 0.01;

int64_t Quantile(std::vector<int64_t> values, double share) {
  if (values.empty()) return 0;
  const auto index = static_cast<size_t>(std::max(0.0, std::ceil(share * static_cast<double>(values.size())) - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

int64_t Median(const std::vector<int64_t>& values) { return Quantile(values, 0.5); }

// The middle one of the ratios of pairs; 0 without any.
double MedianRatio(const std::vector<int64_t>& numerators, const std::vector<int64_t>& denominators) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(numerators.size(), denominators.size()); ++i) {
    if (denominators[i] > 0) ratios.push_back(static_cast<double>(numerators[i]) / static_cast<double>(denominators[i]));
  }
  if (ratios.empty()) return 0;
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

// The two least times of a step in which the node ran at all.
std::vector<int64_t> LeastTimes(std::vector<int64_t> per_step) {
  per_step.erase(std::remove(per_step.begin(), per_step.end(), 0), per_step.end());
  const size_t count = std::min<size_t>(2, per_step.size());
  std::partial_sort(per_step.begin(), per_step.begin() + static_cast<std::ptrdiff_t>(count), per_step.end());
  per_step.resize(count);
  return per_step;
}

std::vector<int64_t> BlockMedians(const std::vector<int64_t>& values) {
  const size_t blocks = std::min(kBlocks, values.size());
  std::vector<int64_t> medians;
  for (size_t b = 0; b < blocks; ++b) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(b * values.size() / blocks);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>((b + 1) * values.size() / blocks);
    medians.push_back(Median(std::vector<int64_t>(begin, end)));
  }
  return medians;
}

double Sum(const std::vector<int64_t>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string ShortDevice(const std::string& full) {
  const size_t at = full.rfind("device:");
  return at == std::string::npos ? full : full.substr(at + 7);
}

// What a row of a table adds up.
struct Totals {
  double nanos = 0, critical_nanos = 0, calls = 0, flops = 0, bytes = 0;
  int nodes = 0;
  double control_nanos = 0;  // of Switch, Merge, Enter, ...
  double most_calls = 0;     // of one node
  double rounds = 0;         // of a loop: how often one of its NextIterations ran; the nodes before the condition run once more

  void Add(const NodeProfile& node, const TraceNode& info) {
    const auto times = static_cast<double>(node.calls);
    nanos += static_cast<double>(node.busy_nanos);
    critical_nanos += static_cast<double>(node.critical_nanos);
    calls += times;
    flops += times * info.flops;
    bytes += times * info.bytes;
    if (info.control_flow) control_nanos += static_cast<double>(node.busy_nanos);
    most_calls = std::max(most_calls, times);
    if (info.closes_loop) rounds = std::max(rounds, times);
    ++nodes;
  }
};

std::string ScopeOf(const std::string& name, int depth) {
  size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    const size_t slash = name.find('/', end);
    if (slash == std::string::npos) return i == 0 ? "(top)" : name.substr(0, end == 0 ? 0 : end - 1);
    end = slash + 1;
  }
  return name.substr(0, end - 1);
}

const char* ViewName(ProfileView view) {
  switch (view) {
    case ProfileView::kOp: return "op";
    case ProfileView::kNode: return "node";
    case ProfileView::kScope: return "scope";
    case ProfileView::kDevice: return "device";
    case ProfileView::kLoop: return "loop";
  }
  return "?";
}

class TextReport {
 public:
  TextReport(const ProfileResult& result, const ProfileReportOptions& options)
      : result_(result),
        options_(options),
        profile_(result.profile),
        tables_(result.profile.tables()),
        steps_(static_cast<double>(std::max<int64_t>(1, result.profile.steps()))) {}

  std::string Run() {
    Header();
    for (const ProfileView view : options_.views) View(view);
    Devices();
    Path();
    if (options_.gaps) Gaps();
    if (options_.transfers || !tables_.transfers.empty()) Transfers();
    if (result_.has_memory) Memory();
    return std::move(text_);
  }

 private:
  std::string PerStep(double nanos) const { return FormatNanos(nanos / steps_); }
  double StepNanos() const { return static_cast<double>(profile_.total_nanos()); }

  void Header() {
    const bool closes = std::abs(result_.Closure() - 1) <= kClosureTolerance;
    absl::StrAppend(&text_, profile_.steps(), " steps on ", Plural(result_.threads, "thread"), "   step ",
                    FormatNanos(static_cast<double>(Median(result_.untraced_nanos))), " (p50) ",
                    FormatNanos(static_cast<double>(Quantile(result_.untraced_nanos, 0.95))), " (p95)   totals close: ",
                    closes ? "yes" : "NO, do not trust the figures", " (", Percent(result_.Closure()),
                    ")   profiler overhead ", Percent(result_.Overhead()), "\n");
    if (profile_.dropped_events() > 0) absl::StrAppend(&text_, Plural(profile_.dropped_events(), "event"), " dropped: calls and iterations are more than the tables show\n");
  }

  std::string KeyOf(ProfileView view, size_t n) const {
    const TraceNode& node = tables_.nodes[n];
    switch (view) {
      case ProfileView::kOp: return node.op;
      case ProfileView::kNode: return node.name;
      case ProfileView::kScope: return ScopeOf(node.name, options_.scope_depth);
      case ProfileView::kDevice: return ShortDevice(tables_.devices[node.device]);
      case ProfileView::kLoop: return node.loop.empty() ? "(no loop)" : node.loop;
    }
    return "";
  }

  void View(ProfileView view) {
    std::map<std::string, Totals> groups;
    for (size_t n = 0; n < tables_.nodes.size(); ++n) {
      if (profile_.nodes()[n].calls > 0) groups[KeyOf(view, n)].Add(profile_.nodes()[n], tables_.nodes[n]);
    }
    std::vector<std::pair<std::string, Totals>> rows(groups.begin(), groups.end());
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second.nanos > b.second.nanos; });
    constexpr auto kRight = Table::Align::kRight;
    Table table({Table::Align::kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight});
    if (view == ProfileView::kLoop) {
      table.AddRow({"by loop", "time", "share", "critical", "iterations", "of one", "control", "nodes"});
    } else {
      table.AddRow({absl::StrCat("by ", ViewName(view)), "time", "share", "critical", "calls", "GFLOP/s", "GB/s",
                    view == ProfileView::kNode ? "op" : "nodes"});
    }
    for (size_t i = 0; i < rows.size() && i < options_.top; ++i) table.AddRow(Row(view, rows[i].first, rows[i].second));
    absl::StrAppend(&text_, "\n", table.ToString());
    if (rows.size() > options_.top) absl::StrAppend(&text_, rows.size() - options_.top, " more (--top)\n");
  }

  std::vector<std::string> Row(ProfileView view, const std::string& key, const Totals& t) const {
    if (view == ProfileView::kLoop) {
      // A loop that ended before its first round, or a frame that goes round no further than once: its nodes tell.
      const double iterations = t.rounds > 0 ? t.rounds : t.most_calls;
      return {Ellipsis(key, 60), PerStep(t.nanos), Percent(t.nanos / StepNanos()), PerStep(t.critical_nanos),
              absl::StrFormat("%.4g", iterations / steps_), FormatNanos(t.nanos / std::max(1.0, iterations)),
              Percent(t.control_nanos / std::max(1.0, t.nanos)), FormatCount(t.nodes)};
    }
    const auto rate = [&](double amount) { return amount > 0 && t.nanos > 0 ? absl::StrFormat("%.1f", amount / t.nanos) : "-"; };
    return {Ellipsis(key, 60), PerStep(t.nanos), Percent(t.nanos / StepNanos()), PerStep(t.critical_nanos),
            absl::StrFormat("%.4g", t.calls / steps_), rate(t.flops), rate(t.bytes),
            view == ProfileView::kNode ? OpOf(key) : FormatCount(t.nodes)};
  }

  std::string OpOf(const std::string& name) const {
    for (const TraceNode& node : tables_.nodes) {
      if (node.name == name) return node.op;
    }
    return "";
  }

  void Devices() {
    constexpr auto kRight = Table::Align::kRight;
    Table table({Table::Align::kLeft, kRight, kRight, kRight, kRight, kRight});
    table.AddRow({"device", "busy", "share", "gaps", "executions", "peak memory"});
    for (size_t d = 0; d < tables_.devices.size(); ++d) {
      const DeviceProfile& device = profile_.devices()[d];
      table.AddRow({ShortDevice(tables_.devices[d]), PerStep(static_cast<double>(device.busy_nanos)),
                    Percent(static_cast<double>(device.busy_nanos) / StepNanos()),
                    PerStep(static_cast<double>(device.gap_nanos)),
                    absl::StrFormat("%.4g", static_cast<double>(device.executions) / steps_),
                    result_.has_memory ? FormatBytes(static_cast<double>(device.memory.peak_bytes)) : "-"});
    }
    absl::StrAppend(&text_, "\n", table.ToString());
  }

  void Path() {
    const CriticalPath& path = profile_.critical_path();
    const auto part = [&](const char* name, int64_t nanos) {
      return absl::StrCat("   ", name, " ", PerStep(static_cast<double>(nanos)), " (",
                          Percent(static_cast<double>(nanos) / StepNanos()), ")");
    };
    absl::StrAppend(&text_, "\ncritical path ", PerStep(StepNanos()), part("compute", path.compute_nanos),
                    part("transfer", path.transfer_nanos), part("dispatch and waiting", path.wait_nanos),
                    part("finishing", path.tail_nanos), "\n");
    if (!options_.critical_path) return;
    std::vector<size_t> nodes(tables_.nodes.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    const auto critical = [&](size_t n) { return profile_.nodes()[n].critical_nanos; };
    std::stable_sort(nodes.begin(), nodes.end(), [&](size_t a, size_t b) { return critical(a) > critical(b); });
    Table table({Table::Align::kRight, Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft});
    for (size_t i = 0; i < nodes.size() && i < options_.top && critical(nodes[i]) > 0; ++i) {
      const TraceNode& node = tables_.nodes[nodes[i]];
      table.AddRow({PerStep(static_cast<double>(critical(nodes[i]))), node.name, node.op,
                    ShortDevice(tables_.devices[node.device])});
    }
    text_ += table.ToString("  ");
  }

  void Gaps() {
    const std::vector<GapProfile> gaps = profile_.Gaps();
    Table table({Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight, Table::Align::kLeft, Table::Align::kLeft});
    table.AddRow({"gaps on", "time", "count", "cause", "node"});
    for (size_t i = 0; i < gaps.size() && i < options_.top; ++i) {
      const GapProfile& gap = gaps[i];
      table.AddRow({ShortDevice(tables_.devices[gap.device]), PerStep(static_cast<double>(gap.nanos)),
                    absl::StrFormat("%.4g", static_cast<double>(gap.count) / steps_), GapCauseName(gap.cause),
                    gap.node < 0 ? "" : tables_.nodes[gap.node].name});
    }
    absl::StrAppend(&text_, "\n", table.ToString());
  }

  void Transfers() {
    std::vector<size_t> order(tables_.transfers.size());
    std::iota(order.begin(), order.end(), 0);
    const auto& transfers = profile_.transfers();
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return transfers[a].exposed_nanos + transfers[a].nanos > transfers[b].exposed_nanos + transfers[b].nanos;
    });
    double bytes = 0, nanos = 0, exposed = 0, count = 0;
    for (const TransferProfile& t : transfers) {
      bytes += static_cast<double>(t.bytes);
      nanos += static_cast<double>(t.nanos);
      exposed += static_cast<double>(t.exposed_nanos);
      count += static_cast<double>(t.count);
    }
    absl::StrAppend(&text_, "\ntransfers   ", Plural(static_cast<int64_t>(order.size()), "edge"), ", ",
                    absl::StrFormat("%.4g", count / steps_), " copies/step, ", FormatBytes(bytes / steps_), ", ",
                    PerStep(nanos), ", of it exposed ", PerStep(exposed), "\n");
    Table table({Table::Align::kRight, Table::Align::kRight, Table::Align::kRight, Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft});
    const size_t shown = options_.transfers ? options_.top : std::min<size_t>(3, options_.top);
    for (size_t i = 0; i < order.size() && i < shown; ++i) {
      const TransferProfile& t = transfers[order[i]];
      const TraceTransfer& info = tables_.transfers[order[i]];
      table.AddRow({PerStep(static_cast<double>(t.nanos)), PerStep(static_cast<double>(t.exposed_nanos)),
                    FormatBytes(static_cast<double>(t.bytes) / steps_),
                    absl::StrCat(ShortDevice(tables_.devices[info.source_device]), " -> ",
                                 ShortDevice(tables_.devices[info.destination_device])),
                    info.tensor, info.cause});
    }
    if (!table.empty()) text_ += table.ToString("  ");
  }

  void Memory() {
    for (size_t d = 0; d < tables_.devices.size(); ++d) {
      const MemoryTimeline& memory = profile_.devices()[d].memory;
      if (memory.peak_bytes == 0) continue;
      absl::StrAppend(&text_, "\nmemory of ", ShortDevice(tables_.devices[d]), "   peak ",
                      FormatBytes(static_cast<double>(memory.peak_bytes)), " at ",
                      FormatNanos(static_cast<double>(memory.peak_nanos)), " of the step, left at its end ",
                      FormatBytes(static_cast<double>(memory.left_bytes)), "\n");
      Table table({Table::Align::kRight, Table::Align::kLeft});
      const size_t shown = options_.memory ? options_.top : std::min<size_t>(3, options_.top);
      for (size_t i = 0; i < memory.holders.size() && i < shown; ++i) {
        const MemoryTimeline::Holder& holder = memory.holders[i];
        table.AddRow({FormatBytes(static_cast<double>(holder.bytes)),
                      holder.node < 0 ? "(not a node)" : tables_.nodes[holder.node].name});
      }
      text_ += table.ToString("  ");
    }
  }

  const ProfileResult& result_;
  const ProfileReportOptions& options_;
  const Profile& profile_;
  const TraceTables& tables_;
  const double steps_;
  std::string text_;
};

// ------------------------------------------------------------------------------------------------- JSON

class RowWriter {
 public:
  explicit RowWriter(const ProfileResult& result)
      : result_(result), profile_(result.profile), tables_(result.profile.tables()),
        steps_(static_cast<double>(std::max<int64_t>(1, result.profile.steps()))) {}

  OrderedJson Rows() {
    for (size_t d = 0; d < tables_.devices.size(); ++d) Device(d);
    for (size_t n = 0; n < tables_.nodes.size(); ++n) {
      if (profile_.nodes()[n].calls > 0) Node(n);
    }
    for (size_t t = 0; t < tables_.transfers.size(); ++t) Transfer(t);
    for (const GapProfile& gap : profile_.Gaps()) Gap(gap);
    Path();
    if (result_.has_memory) Memory();
    return std::move(rows_);
  }

 private:
  double PerStep(int64_t total) const { return static_cast<double>(total) / steps_; }

  void Device(size_t d) {
    const DeviceProfile& device = profile_.devices()[d];
    rows_.push_back({{"type", "device"}, {"device", tables_.devices[d]}, {"busy_ns", PerStep(device.busy_nanos)},
                     {"gap_ns", PerStep(device.gap_nanos)}, {"executions", PerStep(device.executions)}});
  }

  void Node(size_t n) {
    const NodeProfile& node = profile_.nodes()[n];
    const TraceNode& info = tables_.nodes[n];
    OrderedJson row = {{"type", "node"}, {"name", info.name}, {"op", info.op}, {"device", tables_.devices[info.device]},
                       {"calls", PerStep(node.calls)}, {"time_ns", PerStep(node.busy_nanos)},
                       {"critical_ns", PerStep(node.critical_nanos)}, {"flops", info.flops}, {"bytes", info.bytes},
                       {"least_ns", LeastTimes(node.per_step)}};
    if (!info.originals.empty()) row["stands_for"] = info.originals;
    if (!info.inserted_by.empty()) row["inserted_by"] = info.inserted_by;
    if (!info.loop.empty()) row["loop"] = info.loop;
    if (info.control_flow) row["control_flow"] = true;
    rows_.push_back(std::move(row));
  }

  void Transfer(size_t t) {
    const TransferProfile& transfer = profile_.transfers()[t];
    const TraceTransfer& info = tables_.transfers[t];
    rows_.push_back({{"type", "transfer"}, {"tensor", info.tensor}, {"from", tables_.devices[info.source_device]},
                     {"to", tables_.devices[info.destination_device]}, {"cause", info.cause},
                     {"count", PerStep(transfer.count)}, {"bytes", PerStep(transfer.bytes)},
                     {"time_ns", PerStep(transfer.nanos)}, {"exposed_ns", PerStep(transfer.exposed_nanos)}});
  }

  void Gap(const GapProfile& gap) {
    OrderedJson row = {{"type", "gap"}, {"device", tables_.devices[gap.device]}, {"cause", GapCauseName(gap.cause)},
                       {"time_ns", PerStep(gap.nanos)}, {"count", PerStep(gap.count)}};
    if (gap.node >= 0) row["node"] = tables_.nodes[gap.node].name;
    rows_.push_back(std::move(row));
  }

  void Path() {
    const CriticalPath& path = profile_.critical_path();
    rows_.push_back({{"type", "critical_path"}, {"compute_ns", PerStep(path.compute_nanos)},
                     {"transfer_ns", PerStep(path.transfer_nanos)}, {"wait_ns", PerStep(path.wait_nanos)},
                     {"finish_ns", PerStep(path.tail_nanos)}});
  }

  void Memory() {
    for (size_t d = 0; d < tables_.devices.size(); ++d) {
      const MemoryTimeline& memory = profile_.devices()[d].memory;
      OrderedJson holders = OrderedJson::array(), curve = OrderedJson::array();
      for (const MemoryTimeline::Point& point : memory.curve) curve.push_back({point.nanos, point.bytes});
      for (const MemoryTimeline::Holder& holder : memory.holders) {
        holders.push_back({{"node", holder.node < 0 ? OrderedJson() : OrderedJson(tables_.nodes[holder.node].name)},
                           {"bytes", holder.bytes}});
      }
      rows_.push_back({{"type", "memory"}, {"device", tables_.devices[d]}, {"peak_bytes", memory.peak_bytes},
                       {"peak_ns", memory.peak_nanos}, {"left_bytes", memory.left_bytes}, {"holders", holders},
                       {"curve", curve}});
    }
  }

  const ProfileResult& result_;
  const Profile& profile_;
  const TraceTables& tables_;
  const double steps_;
  OrderedJson rows_ = OrderedJson::array();
};

}  // namespace

double ProfileResult::Closure() const {
  const double recorded = Sum(profile.step_nanos());
  if (recorded <= 0) return 0;
  // The device whose busy time and gaps are furthest off the steps' own lengths.
  double worst = 1;
  for (const DeviceProfile& device : profile.devices()) {
    const double share = static_cast<double>(device.busy_nanos + device.gap_nanos) / recorded;
    if (std::abs(share - 1) > std::abs(worst - 1)) worst = share;
  }
  return worst * MedianRatio(profile.step_nanos(), traced_nanos);
}

double ProfileResult::Overhead() const {
  const double ratio = MedianRatio(traced_nanos, untraced_nanos);
  return ratio > 0 ? ratio - 1 : 0;
}

std::string ProfileText(const ProfileResult& result, const ProfileReportOptions& options) {
  return TextReport(result, options).Run();
}

OrderedJson ProfileJson(const ProfileResult& result, OrderedJson config) {
  OrderedJson json = {{"schema", kSchema}, {"config", std::move(config)}};
  json["step"] = {{"steps", result.profile.steps()},
                  {"p50_ns", Median(result.untraced_nanos)},
                  {"p95_ns", Quantile(result.untraced_nanos, 0.95)},
                  {"block_ns", BlockMedians(result.untraced_nanos)},
                  {"traced_p50_ns", Median(result.traced_nanos)},
                  {"overhead", result.Overhead()},
                  {"closure", result.Closure()},
                  {"valid", std::abs(result.Closure() - 1) <= kClosureTolerance},
                  {"dropped_events", result.profile.dropped_events()},
                  {"load_ns", result.load_nanos},
                  {"place_ns", result.info.place_nanos},
                  {"compile_ns", result.info.compile_nanos},
                  {"first_run_ns", result.first_run_nanos}};
  json["rows"] = RowWriter(result).Rows();
  return json;
}

std::string ProfileJsonLines(const OrderedJson& document) {
  const auto dump = [](const OrderedJson& row) { return row.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n"; };
  std::string lines = dump({{"type", "profile"}, {"schema", document["schema"]}, {"config", document["config"]}, {"step", document["step"]}});
  for (OrderedJson row : document["rows"]) {
    row["schema"] = document["schema"];
    lines += dump(row);
  }
  return lines;
}

}  // namespace thalweg::tools
