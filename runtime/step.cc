#include "thalweg/runtime/step.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "thalweg/runtime/step_report.h"

namespace thalweg {
namespace {

int64_t NextStepId() {
  static std::atomic<int64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

constexpr size_t kMaxListedInMessage = 8;

// The keys of the iterations of one call.
constexpr int kIterationKeyBits = 40;

absl::Status HasNoValue(absl::string_view variable) {
  return absl::FailedPreconditionError(absl::StrCat("the variable at '", variable, "' was read before it was initialised; run its initialiser first"));
}

// The output that arrives at this slot of the node's inputs.
std::string NameOfInput(const Plan& plan, const PlanNode& node, uint32_t slot) {
  const Node& of_graph = plan.compiled->graph.node(plan.graph_ids[&node - plan.nodes.data()]);
  const uint32_t* slots = plan.input_slots.data() + node.first_input;
  for (int32_t i = 0; i < of_graph.num_data_inputs; ++i) {
    if (slots[i] == slot) return plan.compiled->graph.EndpointName(of_graph.inputs[i]);
  }
  return "";
}

// What a thread that asks another one what waits gives it to answer, in which it looks at thousands of nodes if it runs any.
constexpr std::chrono::milliseconds kLongestAnswer{10};

// Between two looks at the clock, in ticks of about a third of a nanosecond.
constexpr uint64_t kTicksBetweenClocks = 300'000;

// Of _Send and _Recv, which nobody wrote: for which nodes they carry what. Empty for all others.
std::string DescribeTransfer(const KernelNode& info, const Plan& plan) {
  if (info.schema->role != OpRole::kSend && info.schema->role != OpRole::kRecv) return "";
  const CompiledGraph& compiled = *plan.compiled;
  const Transfer& transfer = compiled.transfers[info.node_attrs().GetOr<int32_t>("pair", 0)];
  std::string text = absl::StrCat(", which carries '", compiled.graph.EndpointName(transfer.source), "' to ");
  for (size_t i = 0; i < transfer.consumers.size(); ++i) {
    if (i == kMaxListedInMessage) {
      absl::StrAppend(&text, " and ", transfer.consumers.size() - i, " more");
      break;
    }
    const Node& consumer = compiled.graph.node(transfer.consumers[i]);
    absl::StrAppend(&text, i ? ", " : "", "node '", consumer.name, "' (", consumer.op, ")");
  }
  return text;
}

}  // namespace

StepState::StepState(const Plan& plan, const StepEnvironment& environment)
    : plan_(plan),
      environment_(environment),
      values_(std::make_unique<Value[]>(plan.execution == Execution::kFrames ? 0 : plan.num_slots)),
      async_(plan.execution == Execution::kFrames ? 0 : plan.num_async),
      one_thread_(plan.execution == Execution::kSequential || plan.execution == Execution::kReplay || plan.frame_plan.one_thread),
      running_(std::make_unique<RunningKernel[]>(environment.pool->threads())) {
  for (size_t i = 0; i < plan.constants.size(); ++i) values_[i].tensor = plan.constants[i];
  if (plan.execution == Execution::kFrames) frame_table_ = std::make_unique<FrameTable>(plan);
  if (plan.execution == Execution::kReplay) {
    replay_.flags.assign(plan.replay.num_flags, 0);
    replay_.iterations.assign(plan.replay.frames.size(), 0);
  }
  if (plan.execution == Execution::kSegments) {
    pending_ = std::make_unique<std::atomic<int32_t>[]>(plan.segments.segments.size());
    readers_left_ = std::make_unique<std::atomic<int32_t>[]>(plan.num_slots);
  }
}

void StepState::Start(absl::Span<const Tensor> feeds, std::vector<Tensor>* results,
                      std::chrono::steady_clock::time_point deadline, Recorder* recorder) {
  feeds_ = feeds;
  results_ = results;
  recorder_ = recorder;
  deadline_ = deadline;
  has_deadline_ = deadline != std::chrono::steady_clock::time_point::max();
  step_id_ = NextStepId();
  start_ticks_ = Recorder::Ticks();
  running_[0].node.store(nullptr, std::memory_order_relaxed);
  dead_reasons_.clear();
  caller_ = nullptr;
  root_ = this;
  call_depth_ = 0;
  first_key_ = 0;
  calls_made_.store(0, std::memory_order_relaxed);
  if (has_call_fault_.exchange(false, std::memory_order_relaxed)) call_fault_ = absl::OkStatus();
  when_drained_ = {};
  attention_.store(0, std::memory_order_relaxed);
  next_clock_ticks_.store(0, std::memory_order_relaxed);
  if (plan_.execution != Execution::kSegments) return;
  const std::vector<Segment>& segments = plan_.segments.segments;
  for (size_t i = 0; i < segments.size(); ++i) pending_[i].store(segments[i].initial_pending, std::memory_order_relaxed);
  for (int32_t i = 0; i < plan_.num_slots; ++i) readers_left_[i].store(plan_.readers[i], std::memory_order_relaxed);
  segments_left_.store(static_cast<int32_t>(segments.size()), std::memory_order_release);
}

void StepState::StartNested(StepState& caller, absl::Span<const Tensor> feeds, std::vector<Tensor>* results) {
  Start(feeds, results, caller.deadline_, nullptr);
  caller_ = &caller;
  root_ = caller.root_;
  call_depth_ = caller.call_depth_ + 1;
  step_id_ = caller.step_id_;
  first_key_ = (root_->calls_made_.fetch_add(1, std::memory_order_relaxed) + 1) << kIterationKeyBits;
  std::lock_guard<std::mutex> lock(root_->report_mutex_);
  root_->calls_.insert(this);
  if (root_->cancelled()) attention_.fetch_or(kRootStopping, std::memory_order_relaxed);
}

void StepState::EndNested() {
  std::lock_guard<std::mutex> lock(root_->report_mutex_);
  root_->calls_.erase(this);
}

void StepState::SetCallFault(const absl::Status& fault) {
  std::lock_guard<std::mutex> lock(report_mutex_);
  if (has_call_fault_.load(std::memory_order_relaxed)) return;
  call_fault_ = fault;
  has_call_fault_.store(true, std::memory_order_release);
}

absl::Status StepState::CallFault() {
  if (!has_call_fault_.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(report_mutex_);
  return call_fault_;
}

void StepState::BeginPending(const PendingNode* pending) {
  std::lock_guard<std::mutex> lock(report_mutex_);
  pending_nodes_.insert(pending);
}

void StepState::EndPending(const PendingNode* pending) {
  std::lock_guard<std::mutex> lock(report_mutex_);
  pending_nodes_.erase(pending);
}

std::vector<StepState::PendingFact> StepState::PendingFacts(size_t limit, size_t* in_all) {
  std::vector<PendingFact> facts;
  {
    std::lock_guard<std::mutex> lock(report_mutex_);
    for (const PendingNode* p : pending_nodes_) facts.push_back({p->node, p->frame, p->iteration, ""});
  }
  *in_all = facts.size();
  const size_t kept = std::min(limit, facts.size());
  std::partial_sort(facts.begin(), facts.begin() + static_cast<ptrdiff_t>(kept), facts.end(), [](const PendingFact& a, const PendingFact& b) {
    return a.iteration != b.iteration ? a.iteration < b.iteration : a.node < b.node;
  });
  facts.resize(kept);
  // The waits of one node belong to its iterations in the order in which both began.
  absl::flat_hash_map<int32_t, std::vector<size_t>> unexplained;  // node -> facts, the first one last
  for (size_t i = kept; i-- > 0;) unexplained[facts[i].node->info->id].push_back(i);
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [token, callback] : callbacks_) {
    if (unexplained.empty()) break;
    const auto found = callback.waits_for == nullptr ? unexplained.end() : unexplained.find(callback.node);
    if (found == unexplained.end()) continue;
    facts[found->second.back()].waits_for = callback.waits_for();
    found->second.pop_back();
    if (found->second.empty()) unexplained.erase(found);
  }
  return facts;
}

void StepState::BeginAnswering() {
  std::lock_guard<std::mutex> lock(question_mutex_);
  answering_ = true;
}

void StepState::EndAnswering() {
  std::lock_guard<std::mutex> lock(question_mutex_);
  answering_ = false;
  question_ = nullptr;
  answered_.notify_all();
}

std::vector<std::string> StepState::AskForWaiting(size_t limit) {
  Question question{limit};
  std::unique_lock<std::mutex> lock(question_mutex_);
  if (!answering_ || question_ != nullptr) return {};
  question_ = &question;
  attention_.fetch_or(kAsked, std::memory_order_relaxed);
  answered_.wait_for(lock, kLongestAnswer, [&] { return question.answered || !answering_; });
  if (question_ == &question) question_ = nullptr;
  return std::move(question.lines);
}

bool StepState::Attend() {
  if ((attention_.load(std::memory_order_relaxed) & kAsked) != 0) {
    std::lock_guard<std::mutex> lock(question_mutex_);
    attention_.fetch_and(static_cast<uint8_t>(~kAsked), std::memory_order_relaxed);
    if (question_ != nullptr) {
      question_->lines = frame_table_->DescribeWaiting(question_->limit);
      question_->answered = true;
      question_ = nullptr;
      answered_.notify_all();
    }
  }
  if ((attention_.load(std::memory_order_relaxed) & kRootStopping) != 0) FailWithCaller();
  return cancelled();
}

std::vector<StepState::RunningFact> StepState::RunningFacts() const {
  std::vector<RunningFact> facts;
  for (int t = 0; t < environment_.pool->threads(); ++t) {
    const PlanNode* node = running_[t].node.load(std::memory_order_relaxed);
    if (node != nullptr) facts.push_back({t, node, running_[t].key.load(std::memory_order_relaxed)});
  }
  return facts;
}

size_t StepState::LookAtCalls(size_t limit, absl::FunctionRef<void(StepState&)> look) {
  std::lock_guard<std::mutex> lock(report_mutex_);
  std::vector<StepState*> calls(calls_.begin(), calls_.end());
  const size_t seen = std::min(limit, calls.size());
  std::partial_sort(calls.begin(), calls.begin() + static_cast<ptrdiff_t>(seen), calls.end(), [](const StepState* a, const StepState* b) {
    return a->call_depth_ != b->call_depth_ ? a->call_depth_ > b->call_depth_ : a->start_ticks_ < b->start_ticks_;
  });
  for (size_t i = 0; i < seen; ++i) look(*calls[i]);
  return calls.size();
}

absl::Status StepState::Finish() {
  feeds_ = {};
  results_ = nullptr;
  recorder_ = nullptr;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!container_.empty()) environment_.resources->ClearContainer(std::exchange(container_, ""));
  }
  if (plan_.execution == Execution::kReplay) ClearReplayedValues();
  if ((attention_.load(std::memory_order_acquire) & kStopping) == 0) return absl::OkStatus();
  for (int32_t i = plan_.execution == Execution::kFrames ? plan_.num_slots : static_cast<int32_t>(plan_.constants.size()); i < plan_.num_slots; ++i) values_[i].Clear();
  std::lock_guard<std::mutex> lock(mutex_);
  callbacks_.clear();
  return std::exchange(status_, absl::OkStatus());
}

// What a branch left that nobody came to read.
void StepState::ClearReplayedValues() {
  for (int32_t i = static_cast<int32_t>(plan_.constants.size()); i < plan_.num_slots; ++i) {
    if (values_[i].present()) values_[i].Clear();
  }
}

void StepState::SetDeadReason(int32_t fetch, std::string reason) {
  std::lock_guard<std::mutex> lock(mutex_);
  dead_reasons_[fetch] = std::move(reason);
}

std::string StepState::DeadReason(int32_t fetch) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = dead_reasons_.find(fetch);
  return found == dead_reasons_.end() ? "" : found->second;
}

void StepState::Fail(absl::Status status) {
  std::map<uint64_t, CancelCallback> callbacks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!status_.ok()) return;
    status_ = std::move(status);
    attention_.fetch_or(kStopping, std::memory_order_release);
    callbacks = std::exchange(callbacks_, {});
    running_callbacks_ = true;
    callback_thread_ = std::this_thread::get_id();
  }
  if (root_ == this) StopCalls();
  for (auto& [token, callback] : callbacks) callback.run();
  std::lock_guard<std::mutex> lock(mutex_);
  running_callbacks_ = false;
  // Notified under the lock: after it is released, the step may be over and this object gone.
  callbacks_done_.notify_all();
}

void StepState::FailWithCaller() { Fail(absl::CancelledError("the step that makes the call has ended")); }

// Cancelling them one within the other is left to items of the pool (CalledFunction), for which every thread may be too busy with just these
// calls.
void StepState::StopCalls() {
  std::lock_guard<std::mutex> lock(report_mutex_);
  for (StepState* call : calls_) call->attention_.fetch_or(kRootStopping, std::memory_order_relaxed);
}

bool StepState::PastDeadline(const PlanNode& next, int64_t iteration) {
  const uint64_t ticks = Recorder::Ticks();
  if (ticks < next_clock_ticks_.load(std::memory_order_relaxed)) return false;
  if (std::chrono::steady_clock::now() < deadline_) {
    next_clock_ticks_.store(ticks + kTicksBetweenClocks, std::memory_order_relaxed);
    return false;
  }
  const std::string waits = DescribeWaits(*this, kMostWaitsInMessage);
  const bool is_end = next.kind == NodeKind::kArg || next.kind == NodeKind::kRetval;
  const std::string name = is_end ? NodeName(plan_, next) : absl::StrCat("node ", NodeName(plan_, next), " (", next.info->schema->name, ")");
  Fail(absl::DeadlineExceededError(absl::StrCat("the step did not end within its time limit; ", name, " was next", DescribePlace(*this, next, iteration),
                                                waits.empty() ? "" : "; ", waits)));
  return true;
}

absl::string_view StepState::step_container() const {
  if (caller_ != nullptr) return caller_->step_container();
  std::lock_guard<std::mutex> lock(mutex_);
  if (container_.empty()) container_ = absl::StrCat("__per_step_", step_id_);
  return container_;
}

uint64_t StepState::OnCancelOfWait(int32_t node, WaitsFor waits_for, absl::AnyInvocable<void()> fn) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if ((attention_.load(std::memory_order_relaxed) & kStopping) == 0) {
      callbacks_.emplace(next_token_, CancelCallback{std::move(fn), node, std::move(waits_for)});
      return next_token_++;
    }
  }
  fn();
  return 0;
}

void StepState::RemoveOnCancel(uint64_t token) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (token == 0 || callbacks_.erase(token) > 0) return;
  // The callback may be running now. Its own thread must not wait for itself.
  callbacks_done_.wait(lock, [&] { return !running_callbacks_ || callback_thread_ == std::this_thread::get_id(); });
}

void ExecuteStep(StepState& step) {
  switch (step.plan().execution) {
    case Execution::kSequential:
      return ExecuteSequential(step);
    case Execution::kSegments:
      return ExecuteParallel(step);
    case Execution::kReplay:
      return ExecuteReplay(step);
    case Execution::kFrames:
      return ExecuteFrames(step);
  }
}

absl::Status RunNode(StepState& step, const PlanNode& node, Value* values, const uint8_t* last_use, KernelContext& context) {
  const Plan& plan = step.plan();
  const uint32_t* inputs = plan.input_slots.data() + node.first_input;
  if (__builtin_expect(node.has_dereferences, 0)) {
    absl::Status status = ReadReferences(plan, node, values);
    if (!status.ok()) return DescribeFailure(status, step, node, values, context.iteration_key());
  }
  switch (node.kind) {
    case NodeKind::kNoOp:
      return absl::OkStatus();
    case NodeKind::kKernel:
      return RunKernel(step, node, values, last_use, context);
    case NodeKind::kArg:
      values[node.first_output].tensor = step.feeds()[node.aux];
      return absl::OkStatus();
    case NodeKind::kRetval: {
      Value& in = values[inputs[0]];
      Tensor& out = step.results()[node.aux];
      if (__builtin_expect(out.initialized(), 0)) {
        return absl::InternalError(absl::StrCat("'", plan.fetch_names[node.aux], "' is inside a loop and has more than one value; fetch what an "
                                                "Exit makes of it"));
      }
      if (in.ref != nullptr) {
        std::lock_guard<std::mutex> lock(in.ref->mutex);
        out = in.ref->tensor;
        if (!out.initialized()) return HasNoValue(plan.fetch_names[node.aux]);
      } else {
        out = last_use[0] ? std::move(in.tensor) : in.tensor;
      }
      return absl::OkStatus();
    }
    case NodeKind::kPass:
    case NodeKind::kEnter:
    case NodeKind::kExit:
    case NodeKind::kNextIteration:
      if (last_use[0]) values[node.first_output] = std::move(values[inputs[0]]);
      else values[node.first_output] = values[inputs[0]];
      return absl::OkStatus();
    case NodeKind::kAsync:
    case NodeKind::kTransfer:
    case NodeKind::kSwitch:
    case NodeKind::kSwitchInPlace:
    case NodeKind::kMerge:
      break;
  }
  return absl::InternalError(absl::StrCat("node '", node.info->name, "' was given to the wrong part of the executor"));
}

absl::Status ReadReferences(const Plan& plan, const PlanNode& node, Value* values) {
  const int32_t index = static_cast<int32_t>(&node - plan.nodes.data());
  for (const Dereference& d : plan.dereferences.at(index)) {
    RefStorage* ref = values[d.reference_slot].ref;
    Value& read = values[d.tensor_slot];
    if (ref == nullptr) {
      read = values[d.reference_slot];  // a feed in place of the variable
      continue;
    }
    {
      std::lock_guard<std::mutex> lock(ref->mutex);
      read.tensor = ref->tensor;
    }
    if (!read.tensor.initialized() && !node.info->schema->allows_uninitialized_input) {
      return HasNoValue(NameOfInput(plan, node, d.tensor_slot));
    }
  }
  return absl::OkStatus();
}

absl::Status ChooseByIndex(const PlanNode& node, const Tensor& tensor, int32_t* branch) {
  if (tensor.shape().rank() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the predicate must be a scalar but has shape ", tensor.shape().ToString()));
  }
  const int32_t index = tensor.flat<int32_t>()[0];
  *branch = index < 0 || index >= node.num_outputs ? node.num_outputs - 1 : index;
  return absl::OkStatus();
}

absl::Status DescribeBadOutput(const PlanNode& node, int output, const Value& value) {
  if (!value.present()) return absl::InternalError(absl::StrCat("output ", output, " was not set"));
  return absl::InternalError(absl::StrCat("output ", output, " is ", DTypeName(value.tensor.dtype()), ", declared ",
                                          DTypeName(node.info->output_types()[output])));
}

int64_t AllocatedBytes(const PlanNode& node, const Value* values) {
  int64_t bytes = 0;
  for (int i = 0; i < node.num_outputs; ++i) {
    const BufferRef& buffer = values[node.first_output + i].tensor.buffer();
    if (buffer && buffer->node_id() == node.info->id) bytes += static_cast<int64_t>(buffer->bytes());
  }
  return bytes;
}

absl::Status DescribeFailure(const absl::Status& status, StepState& step, const PlanNode& node, const Value* values,
                             uint64_t iteration_key) {
  if (status.GetPayload(kInnerCall)) return status;
  const Plan& plan = step.plan();
  const KernelNode& info = *node.info;
  std::string where = absl::StrCat("node '", info.name, "' (", info.schema->name, " on ", info.device->name().ToShortString(), ")");
  absl::StrAppend(&where, DescribePlaceByKey(step, node, iteration_key), DescribeTransfer(info, plan));
  std::string inputs;
  for (uint32_t i = 0; i < node.num_inputs; ++i) {
    if (i == kMaxListedInMessage) {
      absl::StrAppend(&inputs, ", and ", node.num_inputs - i, " more");
      break;
    }
    const Value& in = values[plan.input_slots[node.first_input + i]];
    // What the kernel took for itself has no shape any more.
    const bool is_there = in.tensor.initialized() && (in.tensor.buffer() || in.tensor.num_elements() == 0);
    absl::StrAppend(&inputs, i ? ", " : "", DTypeName(info.input_types()[i]), is_there ? in.tensor.shape().ToString() : "");
  }
  std::string text = absl::StrCat(where, ": ", status.message());
  if (!inputs.empty()) absl::StrAppend(&text, "; inputs: ", inputs);
  return absl::Status(status.code(), text);
}

}  // namespace thalweg
