// One thread, conditionals and loops: runs of nodes in the plan's static order, frames iteration after iteration. What is dead is
// skipped (A20, A21), and the values it would have read are let go.

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/runtime/dead_cause.h"
#include "thalweg/runtime/step.h"

namespace thalweg {
namespace {

template <bool kTraced>
class ReplayExecution {
 public:
  explicit ReplayExecution(StepState& step)
      : step_(step), plan_(step.plan()), replay_(step.plan().replay), state_(step.replay()), values_(step.values()), flags_(state_.flags.data()) {}

  void Run() {
    flags_[0] = 1;
    state_.stack.clear();
    state_.last_key = step_.first_key();
    BeginFrame(kRootFrame);
    while (!state_.stack.empty()) {
      StepState::Replay::Active& active = state_.stack.back();
      const ReplayFrame& frame = replay_.frames[active.frame];
      if (active.run == frame.runs.end) {
        if (!BeginNextIteration(frame, &active)) EndFrame(frame);
        else if (step_.ShouldStop(FirstNode(frame))) return;
        continue;
      }
      const ReplayRun& run = replay_.runs[active.run++];
      if (!IsLive(run.guard)) {
        Skip(run);
      } else if (run.child >= 0) {
        BeginFrame(run.child);
      } else if (!RunAll(run, active)) {
        return;
      }
    }
  }

 private:
  // Of a frame that has been iterated, and so has nodes.
  const PlanNode& FirstNode(const ReplayFrame& frame) const {
    int32_t run = frame.runs.begin;
    while (replay_.runs[run].child >= 0) ++run;
    return plan_.nodes[replay_.runs[run].nodes.begin];
  }

  bool IsLive(ReplayRange guard) const {
    for (int32_t i = guard.begin; i < guard.end; ++i) {
      if (!flags_[replay_.guard_flags[i]]) return false;
    }
    return true;
  }

  void ClearFlags(ReplayRange range) {
    for (int32_t i = range.begin; i < range.end; ++i) flags_[replay_.flags[i]] = 0;
  }

  // Most have been moved on by their last reader.
  void Release(uint32_t slot) {
    if (values_[slot].present()) values_[slot].Clear();
  }

  void ClearSlots(ReplayRange range) {
    for (int32_t i = range.begin; i < range.end; ++i) Release(replay_.slots[i]);
  }

  void Skip(const ReplayRun& run) {
    ClearFlags(run.cleared);
    ClearSlots(run.released);
  }

  void BeginFrame(int32_t frame) {
    ClearFlags(replay_.frames[frame].exit_flags);
    SetIteration(frame, 0);
    const uint64_t key = frame == kRootFrame ? step_.first_key() : ++state_.last_key;
    state_.stack.push_back({frame, replay_.frames[frame].runs.begin, false, key});
    context_.set_iteration_key(key);
  }

  // Reports about running steps read it from other threads.
  void SetIteration(int32_t frame, int64_t number) {
    std::atomic_ref<int64_t>(state_.iterations[frame]).store(number, std::memory_order_relaxed);
  }

  // A42: an iteration begins if a NextIteration had a value for it.
  bool BeginNextIteration(const ReplayFrame& frame, StepState::Replay::Active* active) {
    if (state_.iterations[active->frame] == 0) ClearFlags(frame.entry_flags);
    if (!active->next_is_live) return false;
    SetIteration(active->frame, state_.iterations[active->frame] + 1);
    *active = {active->frame, frame.runs.begin, false, ++state_.last_key};
    context_.set_iteration_key(active->key);
    return true;
  }

  void EndFrame(const ReplayFrame& frame) {
    ClearSlots(frame.invariants);
    state_.stack.pop_back();
    if (!state_.stack.empty()) context_.set_iteration_key(state_.stack.back().key);
  }

  // False if the step must end.
  bool RunAll(const ReplayRun& run, StepState::Replay::Active& active) {
    if constexpr (kTraced) {
      for (int32_t n = run.nodes.begin; n < run.nodes.end; ++n) {
        const uint64_t start = Recorder::Ticks();
        if (!Run(plan_.nodes[n], active)) return false;
        step_.recorder()->Record(0, {start, Recorder::Ticks(), n, AllocatedBytes(plan_.nodes[n], values_), active.frame,
                                     static_cast<int32_t>(state_.iterations[active.frame])});
        ReleaseAfter(plan_.nodes[n]);
      }
    } else {
      const int32_t* const nodes = replay_.busy_nodes.data();
      for (int32_t i = run.busy.begin; i < run.busy.end; ++i) {
        const PlanNode& node = plan_.nodes[nodes[i]];
        if (!Run(node, active)) return false;
        ReleaseAfter(node);
      }
    }
    return true;
  }

  void ReleaseAfter(const PlanNode& node) {
    const uint32_t* release = plan_.releases.data() + node.first_release;
    for (uint32_t i = 0; i < node.num_releases; ++i) Release(release[i]);
  }

  bool Run(const PlanNode& node, StepState::Replay::Active& active) {
    absl::Status status = RunOne(node, active);
    if (__builtin_expect(status.ok(), 1)) return true;
    step_.Fail(std::move(status));
    return false;
  }

  absl::Status RunOne(const PlanNode& node, StepState::Replay::Active& active) {
    const uint8_t* last_use = plan_.last_use.data() + node.first_input;
    switch (node.kind) {
      case NodeKind::kNoOp:
        return absl::OkStatus();
      case NodeKind::kKernel:
        // Only kernels take time; a loop without any is stopped between iterations.
        if (step_.ShouldStop(node)) return absl::CancelledError("the step was stopped");
        if (__builtin_expect(node.has_dereferences, 0)) break;
        return RunKernel(step_, node, values_, last_use, context_);
      case NodeKind::kSwitch:
      case NodeKind::kSwitchInPlace:
        return RunSwitch(node);
      case NodeKind::kMerge:
        return RunMerge(node);
      case NodeKind::kNextIteration:
        active.next_is_live = true;
        if (__builtin_expect(node.has_dereferences, 0)) break;
        if (const uint32_t from = plan_.input_slots[node.first_input]; from != node.first_output) HandOn(from, last_use[0], node.first_output);
        return absl::OkStatus();
      case NodeKind::kExit:
      case NodeKind::kEnter:
        if (node.aux >= 0) THALWEG_RETURN_IF_ERROR(RaiseFlag(node));
        break;
      default:
        break;
    }
    return RunNode(step_, node, values_, last_use, context_);
  }

  absl::Status Describe(const absl::Status& status, const PlanNode& node) {
    return DescribeFailure(status, step_, node, values_, context_.iteration_key());
  }

  absl::Status RaiseFlag(const PlanNode& node) {
    uint8_t& flag = flags_[plan_.replay_controls[node.aux].flag];
    if (flag != 0 && node.kind == NodeKind::kExit) {
      return Describe(absl::InternalError("more than one iteration handed a value out of the loop; a Switch must let only the last "
                                          "do so"),
                      node);
    }
    flag = 1;
    return absl::OkStatus();
  }

  void HandOn(uint32_t from, bool is_last, uint32_t to) {
    if (is_last) values_[to] = std::move(values_[from]);
    else values_[to] = values_[from];
  }

  absl::Status RunSwitch(const PlanNode& node) {
    if (__builtin_expect(node.has_dereferences, 0)) {
      if (absl::Status status = ReadReferences(plan_, node, values_); !status.ok()) return Describe(status, node);
    }
    const uint32_t* inputs = plan_.input_slots.data() + node.first_input;
    int32_t branch = 0;
    if (absl::Status status = ChooseBranch(node, values_[inputs[1]], &branch); !status.ok()) {
      return Describe(status, node);
    }
    if (node.kind == NodeKind::kSwitch) HandOn(inputs[0], plan_.last_use[node.first_input], node.first_output + branch);
    else if (plan_.readers[node.first_output + branch] == 0) Release(inputs[0]);
    const ReplayRange flags = plan_.replay_controls[node.aux].branch_flags;
    for (int32_t i = flags.begin; i < flags.end; ++i) flags_[replay_.flags[i]] = i - flags.begin == branch;
    return absl::OkStatus();
  }

  absl::Status RunMerge(const PlanNode& node) {
    const ReplayControl& control = plan_.replay_controls[node.aux];
    const uint32_t* inputs = plan_.input_slots.data() + node.first_input;
    int32_t arrived = -1;
    for (int32_t i = 0; i < static_cast<int32_t>(node.num_inputs); ++i) {
      const ReplayRange guard = replay_.input_guards[control.input_guards.begin + i];
      if (!(guard.begin < guard.end ? IsLive(guard) : values_[inputs[i]].present())) continue;
      if (arrived >= 0) {
        const std::string both = absl::StrCat("inputs ", arrived, " and ", i, " both have a value; a Merge takes one (A29)");
        return Describe(absl::InternalError(both), node);
      }
      arrived = i;
    }
    if (control.flag >= 0) flags_[control.flag] = arrived >= 0;
    if (arrived < 0) {
      if (control.flag >= 0) return absl::OkStatus();
      return Describe(absl::InternalError("no input has a value"), node);
    }
    const uint32_t input = node.first_input + arrived;
    if (node.has_dereferences) THALWEG_RETURN_IF_ERROR(ReadReferences(plan_, node, values_));
    HandOn(inputs[arrived], plan_.last_use[input], node.first_output);
    if (plan_.readers[node.first_output + 1] > 0) values_[node.first_output + 1].tensor = plan_.merge_indices[arrived];
    return absl::OkStatus();
  }

  StepState& step_;
  const Plan& plan_;
  const ReplayPlan& replay_;
  StepState::Replay& state_;
  Value* const values_;
  uint8_t* const flags_;
  KernelContext context_;
};

bool IsDead(const Plan& plan, const std::vector<uint8_t>& flags, NodeId id) {
  const GuardTable& guards = plan.guards;
  const auto is_set = [&](GuardId g) {
    const std::vector<GuardId>& all = guards.guards[g].all;
    return all.empty() ? flags[g] != 0 : std::all_of(all.begin(), all.end(), [&](GuardId member) { return flags[member] != 0; });
  };
  if (!is_set(guards.of_node[id])) return true;
  return HasRole(plan.compiled->graph.node(id), OpRole::kMerge) && !is_set(guards.flag_of_node[id]);
}

// The flags still say what the last iteration of each frame did.
void ExplainDeadFetches(StepState& step) {
  const Plan& plan = step.plan();
  const StepState::Replay& state = step.replay();
  for (size_t n = 0; n < plan.nodes.size(); ++n) {
    const PlanNode& node = plan.nodes[n];
    if (node.kind != NodeKind::kRetval || step.results()[node.aux].initialized()) continue;
    step.SetDeadReason(node.aux, ExplainDeadness(
                                     plan, plan.graph_ids[n], [&](NodeId id) { return IsDead(plan, state.flags, id); },
                                     [&](NodeId id) { return state.iterations[plan.compiled->control_flow.frame_of[id]]; }));
  }
}

}  // namespace

void ExecuteReplay(StepState& step) {
  if (step.recorder() != nullptr) ReplayExecution<true>(step).Run();
  else ReplayExecution<false>(step).Run();
  const std::vector<Tensor>& results = step.results();
  const bool all_have_values = std::all_of(results.begin(), results.end(), [](const Tensor& t) { return t.initialized(); });
  if (!all_have_values && !step.cancelled()) ExplainDeadFetches(step);
}

}  // namespace thalweg
