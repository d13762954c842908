// ReplayPlan: a graph with conditionals and loops as runs of nodes in a static order, for one thread.
//
// A frame is a list of runs; a run is either nodes of one guard or a whole child frame, which is then executed iteration after
// iteration. What is dead is skipped run by run; there are no counters and no iteration states, because one iteration of a frame
// is over before the next begins. Pure data; the executor is replay_executor.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "thalweg/runtime/flow_graph.h"
#include "thalweg/runtime/guards.h"

namespace thalweg {

// A part of one of ReplayPlan's lists.
struct ReplayRange {
  int32_t begin = 0;
  int32_t end = 0;
};

struct ReplayRun {
  int32_t child = -1;        // the frame to run, or
  ReplayRange nodes;         // nodes of the plan
  ReplayRange busy;          // of busy_nodes: those of them that do anything
  ReplayRange guard;         // of guard_flags: all must be set
  ReplayRange cleared;       // of flags: what this run would set, for when it is skipped
  ReplayRange released;      // of slots: values from elsewhere that end here, for when it is skipped
};

struct ReplayFrame {
  ReplayRange runs;
  ReplayRange exit_flags;    // of flags: cleared when the frame begins
  ReplayRange entry_flags;   // of flags: cleared after the first iteration
  ReplayRange invariants;    // of slots: kept over iterations, released when the frame ends
};

struct ReplayPlan {
  std::vector<ReplayFrame> frames;  // by static frame
  std::vector<ReplayRun> runs;
  std::vector<int32_t> busy_nodes;
  std::vector<int32_t> guard_flags;
  std::vector<int32_t> flags;
  std::vector<uint32_t> slots;
  std::vector<ReplayRange> input_guards;
  int32_t num_flags = 1;            // [0] is always set
};

// The static order, before slots are known.
struct ReplayOrder {
  std::vector<int32_t> nodes;                 // ids, frame by frame
  std::vector<ReplayRun> runs;                // `nodes` ranges refer to the list above
  std::vector<ReplayFrame> frames;
  std::vector<GuardId> guards;                // by run
};

// Nothing if there is no static order: an Exit of a frame feeds an Enter of the same frame, or something other than a Merge reads a
// NextIteration.
std::optional<ReplayOrder> FindReplayOrder(const FlowGraph& graph, const GuardTable& guards);

}  // namespace thalweg
