// Questions about one trace: what the step waited for (critical path), why devices stood still (gaps), and what held
// memory (timeline). All answers are computed from the recorded events; nothing is estimated.
//
// Threading: pure functions. Traces of failed steps are fine: they end where the events end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/proto/export.h"
#include "thalweg/runtime/trace.h"

namespace thalweg {

// One execution on the critical path, and the time between the execution it had to wait for and its start.
struct CriticalPathEntry {
  int32_t event = -1;          // index into Trace::events
  int64_t wait_nanos = 0;      // from the end of the one before on the path (or the step's begin) to its start
  bool for_thread = false;     // the one before gave it its thread, not its last input
};

// The chain of executions that determined the length of the step, in order of time: from the one that ended last back to
// whatever ended last of its last arriver and the execution that had its thread before. The sum of all waits, durations
// and `tail_nanos` is Trace::step_nanos.
struct CriticalPath {
  std::vector<CriticalPathEntry> entries;
  int64_t compute_nanos = 0;
  int64_t transfer_nanos = 0;  // executions of _Send and _Recv
  int64_t wait_nanos = 0;      // ready, with its thread free, but not running: dispatch, waking
  int64_t tail_nanos = 0;      // after the last execution: finishing the step
};
THALWEG_EXPORT CriticalPath FindCriticalPath(const Trace& trace);

enum class GapCause : uint8_t {
  kSetUp,      // before the first execution of the step
  kFinish,     // after the last execution of the step
  kTransfer,   // waited for a tensor from another memory or device
  kOtherNode,  // waited for a node of another device
  kDispatch,   // the next execution was ready, but had not started
  kNoWork,     // nothing of this device was left to do, the step went on elsewhere
};
const char* GapCauseName(GapCause cause);

// A span in which a device ran nothing. The spans of a device and its busy time add up to the step.
struct TraceGap {
  int32_t device = 0;
  int64_t begin_nanos = 0;
  int64_t end_nanos = 0;
  GapCause cause = GapCause::kDispatch;
  int32_t node = -1;  // what was waited for (kTransfer, kOtherNode) or what came next (kDispatch); -1: none
};
// By device, then time. A wait for another device's node is split at that node's end: what follows is dispatch.
THALWEG_EXPORT std::vector<TraceGap> FindGaps(const Trace& trace);

// Memory of one device over the step, of traces with RunOptions::record_memory.
struct MemoryTimeline {
  int32_t device = 0;
  int64_t peak_bytes = 0;  // beyond what was held when the step began
  int64_t peak_nanos = 0;  // when
  int64_t left_bytes = 0;  // still held when the step ended: variables, fetched tensors, caches of kernels
  struct Holder {
    int32_t node = -1;  // index into TraceTables::nodes; -1: not a node of the step
    int64_t bytes = 0;
  };
  std::vector<Holder> holders;  // at the peak, largest first
  struct Point {
    int64_t nanos = 0;
    int64_t bytes = 0;
  };
  std::vector<Point> curve;  // live bytes over time; of many neighbours the largest, so that no peak is lost
};
THALWEG_EXPORT std::vector<MemoryTimeline> FindMemoryPeaks(const Trace& trace);

}  // namespace thalweg
