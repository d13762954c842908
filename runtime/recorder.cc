#include "thalweg/runtime/recorder.h"

#include <algorithm>

namespace thalweg {
namespace {

// Room per thread where nodes run more than once; what a longer step does beyond it is counted, not kept.
constexpr size_t kEventsOfLoops = 1 << 16;

// Who made the nodes ready that nobody recorded it for: of the predecessors the one that ended last, as far as they had run by then
// (nodes of loops run many times). Events are in order of their start.
class LastArrivers {
 public:
  explicit LastArrivers(const Plan& plan) : plan_(plan), end_(plan.nodes.size(), -1) {
    if (plan.frames.empty()) return;
    position_.resize(plan.graph_ids.size());
    for (size_t i = 0; i < plan.graph_ids.size(); ++i) position_[plan.graph_ids[i]] = static_cast<int32_t>(i);
  }

  void SetAll(Trace* trace) {
    for (TraceEvent& e : trace->events) {
      if (e.last_arriver == Recorder::kDerived) e.last_arriver = Of(e.node);
      end_[e.node] = e.end_nanos;
    }
  }

 private:
  int32_t Of(int32_t node) const {
    int32_t last = -1;
    const auto look_at = [&](int32_t p) {
      if (last < 0 || end_[p] > end_[last]) last = p;
    };
    for (int32_t i = plan_.predecessor_offsets[node]; i < plan_.predecessor_offsets[node + 1]; ++i) look_at(plan_.predecessors[i]);
    if (plan_.frames.empty()) return last;
    const Graph& graph = plan_.compiled->graph;
    if (!HasRole(graph.node(plan_.graph_ids[node]), OpRole::kMerge)) return last;
    for (const Endpoint input : graph.node(plan_.graph_ids[node]).inputs) {
      if (HasRole(graph.node(input.node), OpRole::kNextIteration)) look_at(position_[input.node]);
    }
    return last;
  }

  const Plan& plan_;
  std::vector<int64_t> end_;       // of the latest execution so far
  std::vector<int32_t> position_;  // by graph id; of plans with control flow
};

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

void Recorder::ToTrace(absl::Span<const Tensor> feeds, Trace* trace) {
  const uint64_t end_ticks = Ticks();
  const auto so_far = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_time_);
  const double nanos_per_tick = static_cast<double>(so_far.count()) / static_cast<double>(std::max<uint64_t>(1, end_ticks - begin_ticks_));

  trace->tables = plan_.trace_tables(feeds);
  trace->threads = static_cast<int32_t>(rings_.size());
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
    out.last_arriver = e.last_arriver;
    out.end_nanos = static_cast<int64_t>(static_cast<double>(e.end - begin_ticks_) * nanos_per_tick);
    trace->events.push_back(out);
  };
  for (size_t t = 0; t < rings_.size(); ++t) {
    for (size_t i = 0; i < rings_[t].used; ++i) add(rings_[t].events[i], static_cast<int32_t>(t));
    trace->dropped_events += rings_[t].dropped;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Event& e : foreign_) add(e, trace->threads);
  }
  // What one thread did is in order already.
  const auto starts_before = [](const TraceEvent& a, const TraceEvent& b) { return a.start_nanos < b.start_nanos; };
  if (!std::is_sorted(trace->events.begin(), trace->events.end(), starts_before)) {
    std::stable_sort(trace->events.begin(), trace->events.end(), starts_before);
  }
  LastArrivers(plan_).SetAll(trace);
}

}  // namespace thalweg
