#include "thalweg/runtime/memory_recorder.h"

#include <algorithm>
#include <utility>

namespace thalweg {

MemoryRecorder::MemoryRecorder(const Plan& plan) : plan_(plan) {
  for (const std::shared_ptr<Device>& device : plan.devices) {
    MemoryLog& log = device->allocator().memory_log();
    logs_.push_back(log.TryStart() ? &log : nullptr);
  }
}

MemoryRecorder::~MemoryRecorder() {
  for (MemoryLog* log : logs_) {
    if (log != nullptr) log->Stop();
  }
}

void MemoryRecorder::ToTrace(Trace* trace) {
  // Buffers carry the ids of the compiled graph, traces number the nodes in the plan's order.
  std::vector<int32_t> index_of(plan_.graph_ids.size(), -1);
  for (size_t n = 0; n < plan_.graph_ids.size(); ++n) {
    const auto id = static_cast<size_t>(plan_.graph_ids[n]);
    if (id >= index_of.size()) index_of.resize(id + 1, -1);
    index_of[id] = static_cast<int32_t>(n);
  }
  trace->memory.clear();
  for (size_t d = 0; d < logs_.size(); ++d) {
    MemoryLog* log = std::exchange(logs_[d], nullptr);
    if (log == nullptr) continue;
    for (const MemoryLogEvent& e : log->Stop()) {
      const bool known = e.node_id >= 0 && static_cast<size_t>(e.node_id) < index_of.size();
      trace->memory.push_back({std::chrono::nanoseconds(e.time - begin_).count(), e.bytes,
                               known ? index_of[e.node_id] : -1, static_cast<int32_t>(d)});
    }
  }
  std::stable_sort(trace->memory.begin(), trace->memory.end(),
                   [](const TraceMemoryEvent& a, const TraceMemoryEvent& b) { return a.nanos < b.nanos; });
}

}  // namespace thalweg
