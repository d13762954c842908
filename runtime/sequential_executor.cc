// One thread, the plan's order, no atomics: how acyclic plans run where a second thread would not pay.

#include "thalweg/runtime/step.h"

namespace thalweg {
namespace {

// Each instance a function of its own: in one, registers that only recording needs are spilled in both loops, which is a
// tenth of what an empty node costs.
template <bool kTraced>
[[gnu::noinline]] void Run(StepState& step) {
  const Plan& plan = step.plan();
  Value* values = step.values();
  KernelContext context;
  context.set_iteration_key(step.first_key());
  const PlanNode* const begin = plan.nodes.data();
  const PlanNode* const end = begin + plan.nodes.size();
  for (const PlanNode* node = begin; node != end; ++node) {
    if (step.ShouldStop(*node)) return;
    uint64_t start = 0;
    if constexpr (kTraced) start = Recorder::Ticks();
    if (node->kind != NodeKind::kNoOp) {
      absl::Status status = RunNode(step, *node, values, plan.last_use.data() + node->first_input, context);
      if (__builtin_expect(!status.ok(), 0)) {
        step.Fail(std::move(status));
        return;
      }
    }
    if constexpr (kTraced) {
      step.recorder()->Record(0, {start, Recorder::Ticks(), static_cast<int32_t>(node - begin), AllocatedBytes(*node, values)});
    }
    const uint32_t* release = plan.releases.data() + node->first_release;
    for (uint32_t i = 0; i < node->num_releases; ++i) values[release[i]].Clear();
  }
}

}  // namespace

void ExecuteSequential(StepState& step) {
  if (step.recorder() != nullptr) Run<true>(step);
  else Run<false>(step);
}

}  // namespace thalweg
