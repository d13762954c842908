// Plan: the immutable, integer-indexed form of one signature (feeds, fetches, targets) that steps execute.
//
// Built once by BuildPlan from a compiled graph; nothing in it changes during a step (what does is in StepState), but for
// the measured segment costs, which are relaxed atomics that only guide scheduling. Shared by concurrent steps.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/ops/kernel_registry.h"
#include "thalweg/runtime/frame_plan.h"
#include "thalweg/runtime/replay.h"
#include "thalweg/runtime/segments.h"
#include "thalweg/runtime/trace.h"

namespace thalweg {

class FunctionPlans;               // runtime/function_plans.h
enum class NumericsCheck : uint8_t;  // runtime/session.h

enum class NodeKind : uint8_t {
  kNoOp,      // nothing to do (constants too: their value is in a constant slot)
  kKernel,    // Kernel::Compute on a compute thread
  kAsync,     // AsyncKernel::ComputeAsync
  kArg,       // copies feed `aux` into its output
  kRetval,    // moves its input into fetch `aux`
  kPass,      // hands its input on: _Send, Identity, LoopCond, and _Recv where both ends share memory
  kTransfer,  // _Recv that copies between memories, asynchronously
  kSwitch,    // hands input 0 on to the output that input 1 chooses
  kSwitchInPlace,  // of kReplay: the chosen output lies where input 0 does
  kMerge,     // hands on the input that arrived
  kEnter,     // like kPass, into the first iteration of a frame (a constant one: into all)
  kExit,      // like kPass, out of a frame
  kNextIteration,  // like kPass, into the next iteration
};

// Which executor runs the plan. All give the same results.
enum class Execution : uint8_t {
  kSequential,  // one thread, one pass over the nodes: nothing can be dead
  kSegments,    // several threads or asynchronous nodes: nothing can be dead
  kReplay,      // conditionals and loops on one thread, in a static order
  kFrames,      // conditionals and loops in general
};

// One node; `slots` numbers index StepState's values.
struct PlanNode {
  Kernel* kernel = nullptr;         // of kKernel and kAsync
  const KernelNode* info = nullptr;
  uint32_t first_input = 0;         // into Plan::input_slots and Plan::last_use
  uint32_t first_output = 0;        // slot of output 0; outputs are contiguous
  uint32_t first_release = 0;       // into Plan::releases
  uint32_t num_inputs = 0;
  uint16_t num_outputs = 0;
  NodeKind kind = NodeKind::kNoOp;
  bool has_dereferences = false;    // some input is a reference where a tensor is wanted: Plan::dereferences
  uint32_t num_releases = 0;
  int32_t aux = -1;                 // index of feed or fetch; of kAsync and kTransfer: index of its context in the step
};

// An input that takes a tensor is given a reference: the tensor is read into a slot of its own when the node starts (A70).
struct Dereference {
  uint32_t reference_slot = 0;
  uint32_t tensor_slot = 0;
};

// What the replay executor knows of a control-flow node, by PlanNode::aux. Flags are those of ReplayPlan, -1: none.
struct ReplayControl {
  int32_t flag = -1;                       // of Merge, Exit, Enter: set when it hands a value on
  ReplayRange branch_flags;                // of ReplayPlan::flags: of a Switch, by output
  ReplayRange input_guards;                // of ReplayPlan::input_guards: of a Merge, by input: when it counts as arrived; empty range: when it is present
};

struct Plan {
  std::vector<PlanNode> nodes;           // in an order in which producers come first
  std::vector<uint32_t> input_slots;     // per node: the slot of each input
  std::vector<uint8_t> last_use;         // per input, one-thread order: 1 if the value has no later reader
  std::vector<uint8_t> sole_use;         // per input, any order: 1 if it is the value's only reader
  bool forwards_inputs = true;           // whether kernels may take over the buffers of inputs that they are the last to read (A79)
  std::vector<uint32_t> releases;        // per node, one-thread order: slots to clear after it ran; of kFrames: to count down
  int32_t num_slots = 0;
  std::vector<int32_t> readers;          // per slot: number of inputs that read it; constant slots: 0 (of kFrames: -1)
  std::vector<Tensor> constants;         // the first slots, never cleared

  Execution execution = Execution::kSequential;
  SegmentGraph segments;                 // of kSegments
  std::unique_ptr<std::atomic<float>[]> measured_nanos;  // per segment, 0 until measured
  absl::flat_hash_map<int32_t, std::vector<Dereference>> dereferences;  // by node
  bool has_references = false;           // fetched values may share the buffer of a reference variable
  std::vector<Tensor> merge_indices;     // int32 scalars 0, 1, ... for the second output of Merges
  ReplayPlan replay;                     // of kReplay
  std::vector<ReplayControl> replay_controls;
  FramePlan frame_plan;                  // of kFrames; input slots and first outputs are numbered within frames then
  std::vector<StaticFrame> frames;       // [0] is the root; empty without control flow
  GuardTable guards;                     // of kReplay, for messages; by graph id
  int num_async = 0;
  std::vector<int32_t> transfer_source;  // by async index of kTransfer nodes: the device that owns the sent tensor
  std::vector<int32_t> predecessors;     // of each node, through data and control edges, and from _Send to _Recv
  std::vector<int32_t> predecessor_offsets;

  std::vector<DType> feed_types;
  std::vector<PartialShape> feed_shapes;
  std::vector<std::string> feed_names;
  std::vector<std::string> fetch_names;
  NumericsCheck check_numerics{};        // of feeds; kernels have it in them

  // What kernels and traces refer to.
  std::shared_ptr<const CompiledGraph> compiled;        // owns the names and attributes that infos point at; without its placement
  absl::node_hash_set<KernelSignature> signatures;      // that infos point at
  std::vector<KernelNode> infos;                        // by id in compiled->graph
  std::vector<std::shared_ptr<Kernel>> kernels;         // those that nodes point at
  std::shared_ptr<const Graph> loaded;                  // for the names of originals
  std::vector<NodeId> graph_ids;                        // by node: its id in compiled->graph
  std::vector<std::shared_ptr<Device>> devices;
  std::shared_ptr<FunctionPlans> functions;             // that nodes of this plan call; null in the plans of functions

  // The names, costs and transfers that traces of a step with these feeds refer to; costs by the feeds' shapes, where the graph
  // leaves those open. Made when a traced step asks, and kept for the next one with the same shapes. Thread-safe.
  std::shared_ptr<const TraceTables> trace_tables(absl::Span<const Tensor> feeds) const;

 private:
  std::shared_ptr<const TraceTables> MakeTraceTables(const InferredShapes& shapes) const;
  InferredShapes ShapesFrom(absl::Span<const Tensor> feeds) const;

  mutable std::mutex trace_tables_mutex_;
  mutable std::shared_ptr<const TraceTables> trace_tables_;  // guarded, as is what follows
  mutable std::vector<Shape> trace_feed_shapes_;             // that trace_tables_ was made for; none if the graph says all
};

// Keeps stateful kernels for the session's life, so that their state survives from step to step and is shared by all plans
// (A73). Thread-safe.
class StatefulKernels {
 public:
  // The kernel of `key` (StateKey), made by `def` if it is new or the node has changed its op.
  absl::StatusOr<std::shared_ptr<Kernel>> GetOrCreate(const std::string& key, const KernelNode& info, const KernelDef& def);

 private:
  struct Entry {
    std::string op;
    // Copies of what `info` points at: the kernel outlives the plan it was first made for.
    std::string name;
    AttrMap attrs;
    KernelSignature signature;
    KernelNode info;
    std::shared_ptr<Kernel> kernel;
  };
  std::mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Entry>> entries_;  // guarded by mutex_
};

struct PlanInputs {
  std::shared_ptr<const CompiledGraph> compiled;
  std::shared_ptr<const Graph> loaded;
  absl::Span<const std::shared_ptr<Device>> devices;
  const KernelRegistry* kernels = nullptr;
  StatefulKernels* stateful = nullptr;
  FunctionPlans* functions = nullptr;  // for nodes that call functions
  int threads = 1;
  bool general_frames = false;           // kFrames wherever there is control flow
  bool forward_inputs = true;            // see Plan::forwards_inputs
  NumericsCheck check_numerics{};        // of outputs, constants and feeds
  bool pack_constants = true;            // show kernels the values of constant inputs, so that they pack weights once
  // Of the signature, for checking and messages.
  std::vector<std::string> feed_names;
  std::vector<DType> feed_types;
  std::vector<PartialShape> feed_shapes;
  std::vector<std::string> fetch_names;
};

// Creates one kernel per node and lays out the plan. Errors name the node (A1).
absl::StatusOr<std::unique_ptr<Plan>> BuildPlan(const PlanInputs& inputs);

}  // namespace thalweg
