#include "thalweg/runtime/trace_analysis.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"

namespace thalweg {
namespace {

bool IsTransfer(const Trace& trace, int32_t node) { return trace.tables->nodes[node].transfer >= 0; }

// Finds the execution that made another one ready. A node of a loop runs many times, some side by side: of those that ended before the
// reader began, the one that counts is that of the reader's iteration (of the one before for what closes the loop), if they are in one
// frame, else the last.
class Arrivals {
 public:
  explicit Arrivals(const Trace& trace) : trace_(trace), by_node_(trace.tables->nodes.size()) {
    for (size_t i = 0; i < trace.events.size(); ++i) by_node_[trace.events[i].node].push_back(static_cast<int32_t>(i));
    for (std::vector<int32_t>& events : by_node_) {
      std::sort(events.begin(), events.end(), [&](int32_t a, int32_t b) { return EndOf(a) < EndOf(b); });
    }
  }

  // Index of an event, or -1 if `event` was ready from the start.
  int32_t Of(const TraceEvent& event) const {
    if (event.last_arriver < 0) return -1;
    const std::vector<int32_t>& events = by_node_[event.last_arriver];
    const auto after = std::upper_bound(events.begin(), events.end(), event.start_nanos,
                                        [&](int64_t start, int32_t e) { return start < EndOf(e); });
    if (after == events.begin()) return -1;
    int32_t of_iteration_before = -1;
    for (auto it = after; it != events.begin() && after - it < kMostSideBySide; --it) {
      const TraceEvent& candidate = trace_.events[*(it - 1)];
      if (candidate.frame != event.frame) break;
      if (candidate.iteration == event.iteration) return *(it - 1);
      if (candidate.iteration + 1 == event.iteration && of_iteration_before < 0) of_iteration_before = *(it - 1);
    }
    return of_iteration_before >= 0 ? of_iteration_before : *(after - 1);
  }

 private:
  static constexpr ptrdiff_t kMostSideBySide = 64;
  int64_t EndOf(int32_t event) const { return trace_.events[event].end_nanos; }

  const Trace& trace_;
  std::vector<std::vector<int32_t>> by_node_;
};

// By event: the execution before it on the same thread, or -1.
std::vector<int32_t> PreviousOnThread(const Trace& trace) {
  std::vector<int32_t> previous(trace.events.size(), -1);
  std::vector<int32_t> last;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const auto thread = static_cast<size_t>(std::max(0, trace.events[i].thread));
    if (thread >= last.size()) last.resize(thread + 1, -1);
    // Executions of devices' own engines share a row, where they may overlap.
    if (last[thread] >= 0 && trace.events[last[thread]].end_nanos <= trace.events[i].start_nanos) previous[i] = last[thread];
    last[thread] = static_cast<int32_t>(i);
  }
  return previous;
}

// The gaps of one device. `events` are its executions by start.
class GapFinder {
 public:
  GapFinder(const Trace& trace, const Arrivals& arrivals, int32_t device, std::vector<TraceGap>* out)
      : trace_(trace), arrivals_(arrivals), device_(device), out_(out) {}

  void Run(const std::vector<int32_t>& events, int64_t first_start, int64_t last_end) {
    int64_t reached = 0;
    for (const int32_t e : events) {
      const TraceEvent& event = trace_.events[e];
      if (event.start_nanos > reached) Explain(reached, event, first_start);
      reached = std::max(reached, event.end_nanos);
    }
    if (last_end > reached) Add(std::max<int64_t>(reached, 0), last_end, GapCause::kNoWork, -1);
    Add(std::max(reached, last_end), trace_.step_nanos, GapCause::kFinish, -1);
  }

 private:
  // The device ran nothing from `begin` until `next` started.
  void Explain(int64_t begin, const TraceEvent& next, int64_t first_start) {
    int64_t from = begin;
    if (first_start > from) {
      const int64_t until = std::min(first_start, next.start_nanos);
      Add(from, until, GapCause::kSetUp, -1);
      from = until;
    }
    const int32_t arrival = arrivals_.Of(next);
    if (arrival >= 0) {
      const TraceEvent& awaited = trace_.events[arrival];
      const int64_t until = std::min(awaited.end_nanos, next.start_nanos);
      if (until > from) {
        const bool transfer = IsTransfer(trace_, awaited.node) || IsTransfer(trace_, next.node);
        Add(from, until, transfer ? GapCause::kTransfer : GapCause::kOtherNode, awaited.node);
        from = until;
      }
    }
    Add(from, next.start_nanos, GapCause::kDispatch, next.node);
  }

  void Add(int64_t begin, int64_t end, GapCause cause, int32_t node) {
    if (end > begin) out_->push_back({device_, begin, end, cause, node});
  }

  const Trace& trace_;
  const Arrivals& arrivals_;
  const int32_t device_;
  std::vector<TraceGap>* const out_;
};

}  // namespace

const char* GapCauseName(GapCause cause) {
  switch (cause) {
    case GapCause::kSetUp: return "set-up";
    case GapCause::kFinish: return "finish";
    case GapCause::kTransfer: return "transfer";
    case GapCause::kOtherNode: return "other device";
    case GapCause::kDispatch: return "dispatch";
    case GapCause::kNoWork: return "no work left";
  }
  return "?";
}

CriticalPath FindCriticalPath(const Trace& trace) {
  CriticalPath path;
  path.tail_nanos = trace.step_nanos;
  if (trace.tables == nullptr || trace.events.empty()) return path;
  const Arrivals arrivals(trace);
  const auto last = std::max_element(trace.events.begin(), trace.events.end(),
                                     [](const TraceEvent& a, const TraceEvent& b) { return a.end_nanos < b.end_nanos; });
  path.tail_nanos = trace.step_nanos - last->end_nanos;
  const std::vector<int32_t> previous = PreviousOnThread(trace);
  const auto end_of = [&trace](int32_t event) { return event < 0 ? 0 : trace.events[event].end_nanos; };
  for (auto e = static_cast<int32_t>(last - trace.events.begin()); e >= 0;) {
    const TraceEvent& event = trace.events[e];
    const int32_t arrival = arrivals.Of(event);
    const bool for_thread = end_of(previous[e]) > end_of(arrival);
    const int32_t before = for_thread ? previous[e] : arrival;
    CriticalPathEntry entry{e, event.start_nanos - end_of(before), for_thread};
    path.wait_nanos += entry.wait_nanos;
    (IsTransfer(trace, event.node) ? path.transfer_nanos : path.compute_nanos) += event.end_nanos - event.start_nanos;
    path.entries.push_back(entry);
    e = before;
  }
  std::reverse(path.entries.begin(), path.entries.end());
  return path;
}

std::vector<TraceGap> FindGaps(const Trace& trace) {
  std::vector<TraceGap> gaps;
  if (trace.tables == nullptr) return gaps;
  std::vector<std::vector<int32_t>> by_device(trace.tables->devices.size());
  int64_t first_start = trace.step_nanos, last_end = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    by_device[trace.tables->nodes[trace.events[i].node].device].push_back(static_cast<int32_t>(i));
    first_start = std::min(first_start, trace.events[i].start_nanos);
    last_end = std::max(last_end, trace.events[i].end_nanos);
  }
  const Arrivals arrivals(trace);
  for (size_t d = 0; d < by_device.size(); ++d) {
    GapFinder(trace, arrivals, static_cast<int32_t>(d), &gaps).Run(by_device[d], first_start, last_end);
  }
  return gaps;
}

namespace {

constexpr size_t kMostCurvePoints = 1000;

// Of two neighbours the larger stays.
void HalveCurve(std::vector<MemoryTimeline::Point>* curve) {
  size_t kept = 0;
  for (size_t i = 0; i < curve->size(); i += 2) {
    const bool second = i + 1 < curve->size() && (*curve)[i + 1].bytes > (*curve)[i].bytes;
    (*curve)[kept++] = (*curve)[second ? i + 1 : i];
  }
  curve->resize(kept);
}

}  // namespace

std::vector<MemoryTimeline> FindMemoryPeaks(const Trace& trace) {
  std::vector<MemoryTimeline> timelines;
  if (trace.tables == nullptr) return timelines;
  timelines.resize(trace.tables->devices.size());
  std::vector<int64_t> held(timelines.size(), 0);
  for (size_t d = 0; d < timelines.size(); ++d) timelines[d].device = static_cast<int32_t>(d);
  for (const TraceMemoryEvent& e : trace.memory) {
    MemoryTimeline& timeline = timelines[e.device];
    timeline.left_bytes = held[e.device] += e.bytes;
    timeline.curve.push_back({e.nanos, held[e.device]});
    if (held[e.device] > timeline.peak_bytes) {
      timeline.peak_bytes = held[e.device];
      timeline.peak_nanos = e.nanos;
    }
  }
  // A second walk adds up who held what when the peak was reached.
  std::vector<absl::flat_hash_map<int32_t, int64_t>> holders(timelines.size());
  std::vector<bool> passed(timelines.size(), false);
  std::fill(held.begin(), held.end(), 0);
  for (const TraceMemoryEvent& e : trace.memory) {
    if (passed[e.device]) continue;
    holders[e.device][e.node] += e.bytes;
    held[e.device] += e.bytes;
    passed[e.device] = held[e.device] == timelines[e.device].peak_bytes;
  }
  for (MemoryTimeline& timeline : timelines) {
    while (timeline.curve.size() > kMostCurvePoints) HalveCurve(&timeline.curve);
    if (timeline.peak_bytes == 0) continue;
    for (const auto& [node, bytes] : holders[timeline.device]) {
      if (bytes > 0) timeline.holders.push_back({node, bytes});
    }
    std::sort(timeline.holders.begin(), timeline.holders.end(), [](const auto& a, const auto& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.node < b.node;
    });
  }
  return timelines;
}

}  // namespace thalweg
