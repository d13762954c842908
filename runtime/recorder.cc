#include "thalweg/runtime/recorder.h"

#include <algorithm>

namespace thalweg {
namespace {

// Room per thread where nodes run more than once; what a longer step does beyond it is counted, not kept.
constexpr size_t kEventsOfLoops = 1 << 16;

// The predecessor that ended last is the one that made a node ready.
void SetLastArrivers(const Plan& plan, Trace* trace) {
  std::vector<int64_t> end(plan.nodes.size(), -1);
  for (const TraceEvent& e : trace->events) end[e.node] = e.end_nanos;
  for (TraceEvent& e : trace->events) {
    for (int32_t i = plan.predecessor_offsets[e.node]; i < plan.predecessor_offsets[e.node + 1]; ++i) {
      const int32_t p = plan.predecessors[i];
      if (e.last_arriver < 0 || end[p] > end[e.last_arriver]) e.last_arriver = p;
    }
  }
}

}  // namespace

Recorder::Recorder(const Plan& plan, int threads)
    : plan_(plan), ring_size_(plan.nodes.size() + (plan.frames.size() > 1 ? kEventsOfLoops : 0)), rings_(std::max(1, threads)) {
  for (Ring& ring : rings_) ring.events = std::make_unique_for_overwrite<Event[]>(ring_size_);
}

void Recorder::Begin() {
  for (Ring& ring : rings_) {
    ring.used = 0;
    ring.dropped = 0;
  }
  foreign_.clear();
  begin_time_ = std::chrono::steady_clock::now();
  begin_ticks_ = Ticks();
}

void Recorder::RecordForeign(const Event& event) {
  std::lock_guard<std::mutex> lock(mutex_);
  foreign_.push_back(event);
}

size_t Recorder::NumEvents() {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t count = foreign_.size();
  for (const Ring& ring : rings_) count += ring.used;
  return count;
}

void Recorder::ToTrace(Trace* trace) {
  const uint64_t end_ticks = Ticks();
  const auto so_far = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_time_);
  const double nanos_per_tick = static_cast<double>(so_far.count()) / static_cast<double>(std::max<uint64_t>(1, end_ticks - begin_ticks_));

  trace->tables = plan_.trace_tables();
  trace->dropped_events = 0;
  trace->events.clear();
  trace->events.reserve(NumEvents());
  const auto add = [&](const Event& e, int32_t thread) {
    TraceEvent out;
    out.node = e.node;
    out.thread = thread;
    out.start_nanos = static_cast<int64_t>(static_cast<double>(e.start - begin_ticks_) * nanos_per_tick);
    out.output_bytes = e.output_bytes;
    out.frame = e.frame;
    out.iteration = e.iteration;
    out.end_nanos = static_cast<int64_t>(static_cast<double>(e.end - begin_ticks_) * nanos_per_tick);
    trace->events.push_back(out);
  };
  for (size_t t = 0; t < rings_.size(); ++t) {
    for (size_t i = 0; i < rings_[t].used; ++i) add(rings_[t].events[i], static_cast<int32_t>(t));
    trace->dropped_events += rings_[t].dropped;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Event& e : foreign_) add(e, static_cast<int32_t>(rings_.size()));
  }
  // What one thread did is in order already.
  const auto starts_before = [](const TraceEvent& a, const TraceEvent& b) { return a.start_nanos < b.start_nanos; };
  if (!std::is_sorted(trace->events.begin(), trace->events.end(), starts_before)) {
    std::stable_sort(trace->events.begin(), trace->events.end(), starts_before);
  }
  SetLastArrivers(plan_, trace);
}

}  // namespace thalweg
