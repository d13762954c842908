#include "thalweg/runtime/trace.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      out += buffer;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out += '"';
}

// Microseconds with nanosecond digits, as the format wants.
std::string Micros(int64_t nanos) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%lld.%03lld", static_cast<long long>(nanos / 1000), static_cast<long long>(nanos % 1000));
  return buffer;
}

struct Interval {
  int64_t begin;
  int64_t end;
};

int64_t UnionLength(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  int64_t length = 0;
  int64_t reached = 0;
  for (const Interval& i : intervals) {
    const int64_t begin = std::max(i.begin, reached);
    if (i.end > begin) length += i.end - begin;
    reached = std::max(reached, i.end);
  }
  return length;
}

}  // namespace

std::vector<TraceDeviceTotals> Trace::DeviceTotals() const {
  std::vector<TraceDeviceTotals> totals;
  if (tables == nullptr) return totals;
  std::vector<std::vector<Interval>> busy(tables->devices.size());
  for (const TraceEvent& e : events) busy[tables->nodes[e.node].device].push_back({e.start_nanos, std::min(e.end_nanos, step_nanos)});
  totals.resize(busy.size());
  for (size_t d = 0; d < busy.size(); ++d) {
    totals[d].busy_nanos = UnionLength(std::move(busy[d]));
    totals[d].gap_nanos = step_nanos - totals[d].busy_nanos;
  }
  return totals;
}

namespace {

// Which row of its device shows an event: the threads first, then the device's stream, then the copies from device 0, 1, ...
int32_t RowOf(const Trace& trace, const TraceEvent& event) {
  if (event.thread < trace.threads) return event.thread;
  const TraceNode& node = trace.tables->nodes[event.node];
  if (node.transfer < 0) return trace.threads;
  return trace.threads + 1 + trace.tables->transfers[node.transfer].source_device;
}

std::string RowName(const Trace& trace, int32_t row) {
  if (row == 0) return "caller";
  if (row < trace.threads) return absl::StrCat("worker ", row);
  if (row == trace.threads) return "compute stream";
  return absl::StrCat("copies from ", trace.tables->devices[row - trace.threads - 1]);
}

}  // namespace

std::string Trace::ToChromeJson() const {
  std::string out = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"schema\":\"thalweg.trace/1\"},\"traceEvents\":[";
  const char* separator = "\n";
  const auto begin_event = [&] {
    out += separator;
    separator = ",\n";
  };
  const TraceTables no_tables;
  const auto& [nodes, devices, transfers] = tables ? *tables : no_tables;
  for (size_t d = 0; d < devices.size(); ++d) {
    begin_event();
    absl::StrAppend(&out, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", d, ",\"args\":{\"name\":", JsonString(devices[d]), "}}");
  }
  std::set<std::pair<int32_t, int32_t>> rows;
  for (const TraceEvent& e : events) rows.emplace(nodes[e.node].device, RowOf(*this, e));
  for (const auto& [device, row] : rows) {
    begin_event();
    absl::StrAppend(&out, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":", device, ",\"tid\":", row,
                    ",\"args\":{\"name\":", JsonString(RowName(*this, row)), "}}");
  }
  std::vector<int64_t> live(devices.size(), 0);
  for (const TraceMemoryEvent& e : memory) {
    begin_event();
    absl::StrAppend(&out, "{\"ph\":\"C\",\"name\":\"live bytes\",\"pid\":", e.device, ",\"ts\":", Micros(std::max<int64_t>(e.nanos, 0)),
                    ",\"args\":{\"bytes\":", live[e.device] += e.bytes, "}}");
  }
  for (const TraceEvent& e : events) {
    const TraceNode& node = nodes[e.node];
    begin_event();
    absl::StrAppend(&out, "{\"ph\":\"X\",\"name\":", JsonString(node.op), ",\"pid\":", node.device, ",\"tid\":", RowOf(*this, e),
                    ",\"ts\":", Micros(e.start_nanos), ",\"dur\":", Micros(e.end_nanos - e.start_nanos),
                    ",\"args\":{\"node\":", JsonString(node.name));
    if (!node.originals.empty() && !(node.originals.size() == 1 && node.originals[0] == node.name)) {
      absl::StrAppend(&out, ",\"stands_for\":", JsonString(absl::StrJoin(node.originals, ", ")));
    }
    if (!node.inserted_by.empty()) absl::StrAppend(&out, ",\"inserted_by\":", JsonString(node.inserted_by));
    if (e.output_bytes > 0) absl::StrAppend(&out, ",\"output_bytes\":", e.output_bytes);
    if (node.transfer >= 0) absl::StrAppend(&out, ",\"cause\":", JsonString(transfers[node.transfer].cause));
    out += "}}";
    if (node.transfer < 0) continue;
    // A flow arrow leaves the end of the Send and arrives at the beginning of the Recv.
    const bool is_source = node.device == transfers[node.transfer].source_device && node.op == "_Send";
    begin_event();
    absl::StrAppend(&out, "{\"ph\":\"", is_source ? "s" : "f", "\",", is_source ? "" : "\"bp\":\"e\",",
                    "\"name\":\"transfer\",\"cat\":\"transfer\",\"id\":", node.transfer, ",\"pid\":", node.device,
                    ",\"tid\":", RowOf(*this, e), ",\"ts\":", Micros(is_source ? e.end_nanos : e.start_nanos), "}");
  }
  absl::StrAppend(&out, "\n]}\n");
  return out;
}

namespace {

absl::Status CannotWrite(const std::string& path, int error) {
  return absl::Status(absl::ErrnoToStatusCode(error), absl::StrCat("cannot write the trace to '", path, "': ", std::strerror(error)));
}

}  // namespace

absl::Status Trace::WriteChromeJson(const std::string& path) const {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << ToChromeJson();
  file.close();
  if (!file) return CannotWrite(path, errno == 0 ? EIO : errno);
  return absl::OkStatus();
}

}  // namespace thalweg
