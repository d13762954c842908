#include "thalweg/runtime/step_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

constexpr size_t kMostLines = 20;
constexpr size_t kMostCalls = 3;

std::string NodeText(const Plan& plan, const PlanNode& node) {
  if (node.kind == NodeKind::kArg || node.kind == NodeKind::kRetval) return NodeName(plan, node);
  return absl::StrCat("'", node.info->name, "' (", node.info->schema->name, " on ", node.info->device->name().ToShortString(), ")");
}

std::string IterationText(const Plan& plan, int32_t frame, int64_t iteration) {
  if (frame == kRootFrame) return "";
  return absl::StrCat(" in iteration ", iteration, " of frame '", plan.frames[frame].name, "'");
}

int32_t IndexOf(const Plan& plan, const PlanNode& node) { return static_cast<int32_t>(&node - plan.nodes.data()); }

// What an asynchronous node waits for that does not say it itself.
std::string OwnWait(const Plan& plan, const PlanNode& node) {
  if (node.kind != NodeKind::kTransfer) return "has begun and not ended";
  return absl::StrCat("waits for a copy from ", plan.devices[plan.transfer_source[node.aux]]->name().ToShortString());
}

// Nodes of a plan of segments that wait for one of `pending` directly.
void AddWaitingSegments(StepState& step, const std::vector<StepState::PendingFact>& pending, size_t limit, std::vector<std::string>* lines) {
  const Plan& plan = step.plan();
  if (plan.predecessor_offsets.empty()) return;
  absl::flat_hash_set<int32_t> begun;
  for (const StepState::PendingFact& fact : pending) begun.insert(IndexOf(plan, *fact.node));
  for (size_t s = 0; s < plan.segments.segments.size() && lines->size() < limit; ++s) {
    if (step.pending(static_cast<int32_t>(s)).load(std::memory_order_acquire) == 0) continue;
    const Segment& segment = plan.segments.segments[s];
    for (int32_t n = segment.begin; n < segment.end && lines->size() < limit; ++n) {
      for (int32_t i = plan.predecessor_offsets[n]; i < plan.predecessor_offsets[n + 1]; ++i) {
        if (!begun.contains(plan.predecessors[i])) continue;
        lines->push_back(absl::StrCat(NodeName(plan, plan.nodes[n]), " waits for ", NodeName(plan, plan.nodes[plan.predecessors[i]])));
        break;
      }
    }
  }
}

// Of this step alone, without the calls within it.
std::vector<std::string> WaitLines(StepState& step, size_t limit, bool from_outside) {
  const Plan& plan = step.plan();
  std::vector<std::string> lines;
  size_t begun = 0;
  const std::vector<StepState::PendingFact> pending = step.PendingFacts(limit, &begun);
  for (const StepState::PendingFact& fact : pending) {
    lines.push_back(absl::StrCat(NodeText(plan, *fact.node), IterationText(plan, fact.frame, fact.iteration), " ",
                                 fact.waits_for.empty() ? OwnWait(plan, *fact.node) : absl::StrCat("waits for ", fact.waits_for)));
  }
  if (begun > pending.size()) lines.push_back(absl::StrCat(begun - pending.size(), " more nodes have begun and not ended"));
  if (lines.size() >= limit) return lines;
  if (plan.execution == Execution::kSegments) {
    AddWaitingSegments(step, pending, limit, &lines);
  } else if (plan.execution == Execution::kFrames) {
    const size_t more = limit - lines.size();
    const bool ask = from_outside && plan.frame_plan.one_thread;
    for (std::string& line : ask ? step.AskForWaiting(more) : step.frame_table().DescribeWaiting(more)) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> RunningLines(StepState& step) {
  const Plan& plan = step.plan();
  std::vector<std::string> lines;
  for (const StepState::RunningFact& fact : step.RunningFacts()) {
    std::string place;
    // Only the thread of such a plan may look at its frames.
    if (!plan.frame_plan.one_thread) place = DescribePlaceByKey(step, *fact.node, fact.key);
    lines.push_back(absl::StrCat("thread ", fact.thread, " runs ", NodeText(plan, *fact.node), place));
  }
  return lines;
}

void AddLoops(StepState& step, std::vector<std::string>* lines) {
  const Plan& plan = step.plan();
  for (size_t f = 1; f < plan.frames.size(); ++f) {
    if (lines->size() >= kMostLines) return;
    const auto frame = static_cast<int32_t>(f);
    const int64_t iteration = plan.execution == Execution::kReplay ? step.ReplayIteration(frame) : step.frame_table().LatestIteration(frame);
    lines->push_back(absl::StrCat("frame '", plan.frames[f].name, "' began iteration ", iteration, " last"));
  }
}

std::string Seconds(int64_t nanos) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s", static_cast<double>(nanos) * 1e-9);
  return text;
}

void AppendLines(const std::vector<std::string>& lines, const char* indent, std::string* out) {
  for (const std::string& line : lines) absl::StrAppend(out, indent, line, "\n");
}

std::vector<std::string> AllLines(StepState& step) {
  std::vector<std::string> lines = RunningLines(step);
  for (std::string& line : WaitLines(step, kMostLines, /*from_outside=*/true)) lines.push_back(std::move(line));
  if (!step.plan().frames.empty()) AddLoops(step, &lines);
  return lines;
}

}  // namespace

std::string NodeName(const Plan& plan, const PlanNode& node) {
  if (node.kind == NodeKind::kArg) return absl::StrCat("feed '", plan.feed_names[node.aux], "'");
  if (node.kind == NodeKind::kRetval) return absl::StrCat("fetch '", plan.fetch_names[node.aux], "'");
  return absl::StrCat("'", node.info->name, "'");
}

std::string DescribePlace(StepState& step, const PlanNode& node, int64_t iteration) {
  const Plan& plan = step.plan();
  if (plan.frames.empty()) return "";
  const int32_t frame = plan.compiled->control_flow.frame_of[plan.graph_ids[IndexOf(plan, node)]];
  if (plan.execution == Execution::kReplay) iteration = step.ReplayIteration(frame);
  return iteration < 0 ? "" : IterationText(plan, frame, iteration);
}

std::string DescribePlaceByKey(StepState& step, const PlanNode& node, uint64_t iteration_key) {
  if (step.plan().execution == Execution::kFrames) return step.frame_table().DescribeIteration(iteration_key);
  return DescribePlace(step, node);
}

std::string DescribeWaits(StepState& step, size_t limit) {
  std::vector<std::string> lines = WaitLines(step, limit, /*from_outside=*/false);
  step.LookAtCalls(1, [&](StepState& call) {
    for (std::string& line : WaitLines(call, limit, /*from_outside=*/true)) {
      lines.push_back(absl::StrCat("within ", call.call_depth(), call.call_depth() == 1 ? " call " : " calls ", line));
    }
  });
  return absl::StrJoin(lines, "; ");
}

absl::Status TimeLimitError(StepState& step) {
  const std::string waits = DescribeWaits(step, kMostWaitsInMessage);
  return absl::DeadlineExceededError(absl::StrCat("the step did not end within its time limit", waits.empty() ? "" : "; ", waits));
}

std::string DescribeStep(StepState& step, int64_t elapsed_nanos) {
  const Plan& plan = step.plan();
  std::string out = absl::StrCat("step ", step.step_id(), ", running for ", Seconds(elapsed_nanos), ", of ", plan.nodes.size(), " nodes");
  if (!plan.fetch_names.empty()) absl::StrAppend(&out, ", for '", plan.fetch_names[0], "'", plan.fetch_names.size() > 1 ? " and others" : "");
  absl::StrAppend(&out, step.cancelled() ? ", is ending\n" : "\n");
  AppendLines(AllLines(step), "  ", &out);
  size_t seen = 0;
  std::string calls;
  const size_t in_all = step.LookAtCalls(kMostCalls, [&](StepState& call) {
    ++seen;
    absl::StrAppend(&calls, "  call within ", call.call_depth() - 1, " others\n");
    AppendLines(AllLines(call), "    ", &calls);
  });
  out += calls;
  if (in_all > seen) absl::StrAppend(&out, "  and ", in_all - seen, " more calls around or beside these\n");
  return out;
}

}  // namespace thalweg
