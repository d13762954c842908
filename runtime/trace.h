// Trace: what one step did, as recorded by its threads, and its export as Chrome/Perfetto trace JSON.
//
// Times are nanoseconds since the step began. Filled by Run when RunOptions::trace points at one; read afterwards by one
// thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "thalweg/proto/export.h"

namespace thalweg {

struct TraceEvent {
  int32_t node = -1;          // index into TraceTables::nodes
  int32_t thread = 0;         // 0 is the caller's thread
  int64_t start_nanos = 0;
  int64_t end_nanos = 0;
  int32_t iteration = 0;
  int32_t frame = 0;          // 0 is the root frame
  int32_t last_arriver = -1;  // the node whose completion made this one ready; -1: ready from the start
  int64_t output_bytes = 0;   // allocated for its outputs (not those passed on or reused)
};

// A buffer that came (or went: negative bytes) while the step ran.
struct TraceMemoryEvent {
  int64_t nanos = 0;
  int64_t bytes = 0;
  int32_t node = -1;   // index into TraceTables::nodes; -1: allocated outside the step's nodes
  int32_t device = 0;  // index into TraceTables::devices: whose memory
};

struct TraceNode {
  std::string name;
  std::string op;
  int32_t device = 0;                  // index into TraceTables::devices
  std::vector<std::string> originals;  // nodes of the loaded graph it stands for; empty if a pass inserted it
  std::string inserted_by;
  int32_t transfer = -1;               // of _Send and _Recv: index into TraceTables::transfers
  double flops = 0;
  double bytes = 0;
  std::string loop;                    // the frame it runs in, "outer > inner"; "" outside loops
  bool closes_loop = false;            // NextIteration: runs once for every time that its loop goes round
  bool control_flow = false;           // Switch, Merge, Enter, ...: what a loop costs beside its work
};

struct TraceTransfer {
  std::string tensor;
  int32_t source_device = 0;
  int32_t destination_device = 0;
  int64_t bytes = 0;
  std::string cause;
};

// What is the same for every step of one compiled signature; shared by their traces.
struct TraceTables {
  std::vector<TraceNode> nodes;
  std::vector<std::string> devices;
  std::vector<TraceTransfer> transfers;
};

struct TraceDeviceTotals {
  int64_t busy_nanos = 0;  // length of the union of its events
  int64_t gap_nanos = 0;   // the rest of the step
};

class THALWEG_EXPORT Trace {
 public:
  std::shared_ptr<const TraceTables> tables;  // never null after a Run
  std::vector<TraceEvent> events;             // by start time
  std::vector<TraceMemoryEvent> memory;       // by time; empty unless RunOptions::record_memory asked for it
  int32_t threads = 1;                        // compute threads; events with this thread ran on a device's own engine
  int64_t step_nanos = 0;                     // from entry to return of the Run call
  int64_t dropped_events = 0;                 // did not fit the preallocated rings

  // Busy time and gaps per device, computed from events: busy + gap == step_nanos.
  std::vector<TraceDeviceTotals> DeviceTotals() const;
  // The Chrome trace event format (also read by Perfetto): per device one row for each thread, for its compute stream and for
  // the copies from each other device; flow arrows from Send to Recv; live bytes, where `memory` is not empty.
  std::string ToChromeJson() const;
  absl::Status WriteChromeJson(const std::string& path) const;
};

}  // namespace thalweg
