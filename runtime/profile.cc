#include "thalweg/runtime/profile.h"

#include <algorithm>
#include <tuple>

namespace thalweg {

absl::Status Profile::Add(const Trace& trace) {
  if (trace.tables == nullptr) return absl::InvalidArgumentError("the trace is empty: run a step with it first");
  if (tables_ == nullptr) {
    tables_ = trace.tables;
    nodes_.resize(tables_->nodes.size());
    devices_.resize(tables_->devices.size());
    transfers_.resize(tables_->transfers.size());
  } else if (tables_ != trace.tables) {
    return absl::InvalidArgumentError("the trace is of another callable than the ones before: make a profile for each");
  }
  step_nanos_.push_back(trace.step_nanos);
  total_nanos_ += trace.step_nanos;
  dropped_events_ += trace.dropped_events;
  AddExecutions(trace);
  AddGaps(trace);
  AddCriticalPath(trace);
  AddMemory(trace);
  return absl::OkStatus();
}

void Profile::AddExecutions(const Trace& trace) {
  const size_t step = step_nanos_.size() - 1;
  for (const TraceEvent& e : trace.events) {
    const int64_t nanos = e.end_nanos - e.start_nanos;
    NodeProfile& node = nodes_[e.node];
    ++node.calls;
    node.busy_nanos += nanos;
    node.per_step.resize(step + 1, 0);
    node.per_step.back() += nanos;
    const TraceNode& info = tables_->nodes[e.node];
    ++devices_[info.device].executions;
    if (info.transfer < 0) continue;
    TransferProfile& transfer = transfers_[info.transfer];
    transfer.nanos += nanos;
    if (info.op != "_Recv") continue;
    ++transfer.count;
    transfer.bytes += std::max(e.output_bytes, tables_->transfers[info.transfer].bytes);
  }
  for (NodeProfile& node : nodes_) node.per_step.resize(step + 1, 0);
  const std::vector<TraceDeviceTotals> totals = trace.DeviceTotals();
  for (size_t d = 0; d < totals.size(); ++d) {
    devices_[d].busy_nanos += totals[d].busy_nanos;
    devices_[d].gap_nanos += totals[d].gap_nanos;
  }
}

void Profile::AddGaps(const Trace& trace) {
  for (const TraceGap& gap : FindGaps(trace)) {
    const int64_t nanos = gap.end_nanos - gap.begin_nanos;
    GapProfile& sum = gaps_[GapKey{gap.device, gap.cause, gap.node}];
    sum.device = gap.device;
    sum.cause = gap.cause;
    sum.node = gap.node;
    sum.nanos += nanos;
    ++sum.count;
    if (gap.cause == GapCause::kTransfer && tables_->nodes[gap.node].transfer >= 0) {
      transfers_[tables_->nodes[gap.node].transfer].exposed_nanos += nanos;
    }
  }
}

void Profile::AddCriticalPath(const Trace& trace) {
  const CriticalPath path = FindCriticalPath(trace);
  for (const CriticalPathEntry& entry : path.entries) {
    const TraceEvent& e = trace.events[entry.event];
    nodes_[e.node].critical_nanos += e.end_nanos - e.start_nanos;
  }
  critical_path_.compute_nanos += path.compute_nanos;
  critical_path_.transfer_nanos += path.transfer_nanos;
  critical_path_.wait_nanos += path.wait_nanos;
  critical_path_.tail_nanos += path.tail_nanos;
}

void Profile::AddMemory(const Trace& trace) {
  for (MemoryTimeline& timeline : FindMemoryPeaks(trace)) {
    DeviceProfile& device = devices_[timeline.device];
    if (timeline.peak_bytes > device.memory.peak_bytes) device.memory = std::move(timeline);
  }
}

std::vector<GapProfile> Profile::Gaps() const {
  std::vector<GapProfile> out;
  out.reserve(gaps_.size());
  for (const auto& [key, gap] : gaps_) out.push_back(gap);
  std::sort(out.begin(), out.end(), [](const GapProfile& a, const GapProfile& b) {
    return std::tie(b.nanos, a.device, a.cause, a.node) < std::tie(a.nanos, b.device, b.cause, b.node);
  });
  return out;
}

}  // namespace thalweg
