// FramePlan: a graph with control flow as counters and edges, for the frame executor: any number of threads, asynchronous nodes, and
// iterations of a loop side by side. Pure data; slots of a frame are numbered within the frame.
#pragma once

#include <cstdint>
#include <vector>

#include "thalweg/devices/tensor.h"
#include "thalweg/runtime/flow_graph.h"

namespace thalweg {

// What the arrival of a value (or control) at a node does to its counter. See Counter below.
struct FrameEdge {
  int32_t target = 0;        // position in the plan
  int32_t local = 0;         // the target's FrameNode::local
  bool to_merge = false;
  int32_t output = -1;       // which output is carried; -1: control
  int32_t merge_input = -1;  // data into a Merge: which input
};

// The counter of one node in one iteration. Ordinary nodes: how many edges are still to arrive, and how many arrived dead; of a
// Switch that has run, the index is that of the output it chose. Merges: twice the controls still to arrive, plus one until a live
// value came (A4), how many values arrived dead, and which was live.
class Counter {
 public:
  static constexpr int kDeadShift = 28;
  static constexpr int kIndexShift = 46;
  static constexpr uint64_t kPendingMask = (uint64_t{1} << kDeadShift) - 1;
  static constexpr uint64_t kDeadMask = (uint64_t{1} << (kIndexShift - kDeadShift)) - 1;
  static constexpr uint64_t kOneDead = uint64_t{1} << kDeadShift;
  static uint64_t Pending(uint64_t word) { return word & kPendingMask; }
  static uint64_t Dead(uint64_t word) { return (word >> kDeadShift) & kDeadMask; }
  static int32_t Index(uint64_t word) { return static_cast<int32_t>(word >> kIndexShift); }
};

struct FrameNode {
  int32_t frame = 0;
  int32_t local = 0;          // index of its counter in an iteration
  uint64_t initial = 0;       // of its counter
  int32_t first_edge = 0;
  int32_t num_edges = 0;
  int32_t num_values = 0;     // data inputs of a Merge
  int32_t child = -1;         // of an Enter: the frame it leads into,
  int32_t exit_ordinal = 0;   // of an Exit: which of its frame's
  bool is_merge = false;
  bool never_dead = false;    // ControlTrigger (A22)
  bool is_constant_enter = false;
  bool expensive = false;     // worth handing to another thread
  // A node that does nothing is passed over: what would activate it activates its readers.
  bool passed_over = false;
  bool counts_readers = false;  // some input has several readers: whether this one is the last is known only when it runs
  int32_t source = -1;        // of such a node: what would activate it (-1: nothing, it is live at once),
  int32_t source_output = -1; // and through which output; -1: control
};

struct FramePlanFrame {
  int32_t parent = -1;
  int32_t ordinal = 0;               // among the frames of its parent
  int64_t window = 1;                // iterations that may be alive at once
  int32_t num_enters = 0;
  int32_t num_children = 0;
  std::vector<int32_t> nodes;        // positions, by local index
  std::vector<uint64_t> initial;     // counters of a new iteration, by local index
  std::vector<int32_t> exits;        // positions, by ordinal
  uint32_t first_slot = 0;           // of the frame's slots in the numbering of the whole plan
  uint32_t num_slots = 0;
  std::vector<std::pair<uint32_t, Tensor>> constants;       // slot in the frame -> value, in every iteration
  std::vector<std::pair<uint32_t, int32_t>> shared_slots;   // with more than one reader that counts down: slot -> readers
  std::vector<uint32_t> cleared;     // slots that a retired iteration lets go of, if something is there
};

struct FramePlan {
  std::vector<FrameNode> nodes;      // by position in the plan
  std::vector<FrameEdge> edges;
  std::vector<FramePlanFrame> frames;
  std::vector<int32_t> roots;        // nodes that wait for nothing
  bool one_thread = false;           // one thread and nothing asynchronous: counters need no atomic arithmetic
  bool check_completion = false;     // after each step: every node has completed or is dead (I2)
};

// Counters and edges for `order` (graph ids by position). Slots, constants and costs are filled in by the caller.
FramePlan MakeFramePlan(const FlowGraph& graph, const std::vector<int32_t>& order);

}  // namespace thalweg
