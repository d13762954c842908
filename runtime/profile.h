// Profile: what repeated steps of one signature cost, attributed to nodes, devices, transfers, gaps and memory.
//
//   Profile profile;
//   for (...) { Trace trace; callable->RunInto(feeds, &results, {.trace = &trace}); profile.Add(trace); }
//
// Threading: one thread at a time. Totals close: per device, busy and gaps add up to the steps' lengths; `closure` says
// how well the recorded steps fill what the caller's own clock showed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "thalweg/proto/export.h"
#include "thalweg/runtime/trace.h"
#include "thalweg/runtime/trace_analysis.h"

namespace thalweg {

// Times are nanoseconds over all steps, unless they say per step.
struct NodeProfile {
  int64_t calls = 0;
  int64_t busy_nanos = 0;
  int64_t critical_nanos = 0;   // of its executions on critical paths
  std::vector<int64_t> per_step;  // busy nanoseconds of each step
};

struct DeviceProfile {
  int64_t busy_nanos = 0;
  int64_t gap_nanos = 0;
  int64_t executions = 0;
  MemoryTimeline memory;  // of the step with the highest peak
};

struct GapProfile {
  int32_t device = 0;
  GapCause cause = GapCause::kDispatch;
  int32_t node = -1;
  int64_t nanos = 0;
  int64_t count = 0;
};

struct TransferProfile {
  int64_t count = 0;
  int64_t nanos = 0;          // executions of its _Send and _Recv
  int64_t exposed_nanos = 0;  // devices' gaps that waited for it
  int64_t bytes = 0;          // moved, as recorded where the shape was not known before
};

class THALWEG_EXPORT Profile {
 public:
  // InvalidArgument if the trace is of another callable than those before, or empty.
  absl::Status Add(const Trace& trace);
  // Only the memory of a step recorded with RunOptions::record_memory, which takes too long to count its times too. The
  // trace must be of the callable whose steps were added before.
  void AddMemory(const Trace& trace);

  int64_t steps() const { return static_cast<int64_t>(step_nanos_.size()); }
  const TraceTables& tables() const { return *tables_; }
  const std::vector<int64_t>& step_nanos() const { return step_nanos_; }
  int64_t total_nanos() const { return total_nanos_; }
  int64_t dropped_events() const { return dropped_events_; }

  const std::vector<NodeProfile>& nodes() const { return nodes_; }              // by TraceTables::nodes
  const std::vector<DeviceProfile>& devices() const { return devices_; }        // by TraceTables::devices
  const std::vector<TransferProfile>& transfers() const { return transfers_; }  // by TraceTables::transfers
  // Longest first.
  std::vector<GapProfile> Gaps() const;
  // Sums over the critical paths of all steps; entries are left out (NodeProfile::critical_nanos has them by node).
  const CriticalPath& critical_path() const { return critical_path_; }

 private:
  void AddExecutions(const Trace& trace);
  void AddGaps(const Trace& trace);
  void AddCriticalPath(const Trace& trace);

  std::shared_ptr<const TraceTables> tables_;
  std::vector<int64_t> step_nanos_;
  int64_t total_nanos_ = 0;
  int64_t dropped_events_ = 0;
  std::vector<NodeProfile> nodes_;
  std::vector<DeviceProfile> devices_;
  std::vector<TransferProfile> transfers_;
  struct GapKey {
    int32_t device;
    GapCause cause;
    int32_t node;
    friend bool operator==(const GapKey& a, const GapKey& b) {
      return a.device == b.device && a.cause == b.cause && a.node == b.node;
    }
    template <typename H>
    friend H AbslHashValue(H h, const GapKey& k) {
      return H::combine(std::move(h), k.device, k.cause, k.node);
    }
  };
  absl::flat_hash_map<GapKey, GapProfile> gaps_;
  CriticalPath critical_path_;
};

}  // namespace thalweg
