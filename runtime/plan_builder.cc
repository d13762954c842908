#include <algorithm>
#include <memory>
#include <queue>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/lowering/lower_functions.h"
#include "thalweg/graph/provenance.h"
#include "thalweg/runtime/completion_check.h"
#include "thalweg/runtime/function_plans.h"
#include "thalweg/runtime/kernel_services.h"
#include "thalweg/runtime/node_lists.h"
#include "thalweg/runtime/numerics_check.h"
#include "thalweg/runtime/plan.h"
#include "thalweg/runtime/replay_slots.h"
#include "thalweg/runtime/shape_check.h"
#include "thalweg/runtime/text_accounting.h"
#include "thalweg/runtime/tuning.h"

namespace thalweg {
namespace {

// What the builder knows of a graph node before the plan is laid out.
struct Draft {
  Kernel* kernel = nullptr;
  std::unique_ptr<Tensor> constant;  // of kConstant
  NodeId id = kNoNode;
  float nanos = 0;                   // estimated
  uint32_t first_input = 0;          // into PlanBuilder::inputs_: data inputs, _Recv's being its _Send
  uint32_t num_inputs = 0;
  int32_t num_outputs = 0;           // _Send has one here: what it hands on
  int32_t aux = -1;
  int32_t transfer_source = -1;
  NodeKind kind = NodeKind::kNoOp;
  OpRole role = OpRole::kNormal;
  bool read_through = false;         // see FlowNode
};

// In the place of a node that can only fail.
class FaultyKernel final : public Kernel {
 public:
  explicit FaultyKernel(absl::Status fault) : fault_(std::move(fault)) {}
  absl::Status Compute(KernelContext&) override { return fault_; }

 private:
  const absl::Status fault_;
};

bool IsKeptByFrame(const Node& node) {
  return HasRole(node, OpRole::kEnter) && node.node_attrs().GetOr<bool>("is_constant", false);
}

NodeCost CostOf(const Graph& graph, const InferredShapes& shapes, NodeId id, const KernelNode& info) {
  const Node& node = graph.node(id);
  const size_t num_inputs = static_cast<size_t>(node.num_data_inputs);
  if (node.schema->cost_fn == nullptr || info.input_types().size() != num_inputs) return NodeCost();
  std::vector<PartialShape> inputs, outputs;
  for (Endpoint e : node.data_inputs()) inputs.push_back(shapes.output(e));
  for (int i = 0; i < node.num_outputs(); ++i) outputs.push_back(shapes.output(id, i));
  return node.schema->cost_fn(CostContext(node.node_attrs(), info.input_types(), inputs, info.output_types(), outputs));
}

// Copies of a function's node share the state of one kernel, however often and from where the function is called: what they
// are is told by function, node and attributes.
std::string StateKey(const Node& node, const std::string& backend) {
  const std::string copied = node.node_attrs().GetOr<std::string>(kFunctionNodeAttr, "");
  if (copied.empty()) return std::string(node.name);
  uint64_t hash = 0;
  for (const AttrDecl& decl : node.schema->attrs) {
    if (const Attr* value = node.attrs.Find(decl.name)) hash = absl::HashOf(hash, decl.name, AttrHash(*value));
  }
  return absl::StrCat("node of function ", copied, " on ", backend, " with attributes ", hash);
}

class PlanBuilder {
 public:
  explicit PlanBuilder(const PlanInputs& in) : in_(in), graph_(in.compiled->graph), plan_(std::make_unique<Plan>()) {}

  absl::StatusOr<std::unique_ptr<Plan>> Build() {
    plan_->compiled = in_.compiled;
    plan_->loaded = in_.loaded;
    plan_->devices.assign(in_.devices.begin(), in_.devices.end());
    FindTransfers();
    drafts_.reserve(graph_.num_nodes());
    plan_->infos.reserve(graph_.num_nodes());  // they must not move
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      THALWEG_RETURN_IF_ERROR(ForNode(id, AddDraft(id)));
    }
    THALWEG_RETURN_IF_ERROR(TakeCopiedConstants());
    THALWEG_RETURN_IF_ERROR(CheckMemoryKinds());
    slot_base_.assign(in_.compiled->control_flow.frames.size(), 0);
    if (HasControlFlow()) {
      MakeFlowGraph();
      THALWEG_RETURN_IF_ERROR(OrderControlFlow());
    } else {
      THALWEG_RETURN_IF_ERROR(Order());
    }
    if (plan_->execution == Execution::kFrames) LayOutFrameSlots();
    else LayOutSlots();
    LayOutNodes();
    if (plan_->execution == Execution::kFrames) {
      FindFrameReaders();
    } else {
      FindLastUses();
    }
    if (plan_->execution == Execution::kReplay) {
      LayOutReplay();
      ShareReplaySlots(flow_, order_, plan_.get());
      for (ReplayRun& run : plan_->replay.runs) run.busy = AddBusyNodes(run.nodes);
    }
    if (!in_.forward_inputs) KeepInputsOfKernels();
    plan_->feed_names = in_.feed_names;
    plan_->feed_types = in_.feed_types;
    plan_->feed_shapes = in_.feed_shapes;
    plan_->fetch_names = in_.fetch_names;
    plan_->check_numerics = in_.check_numerics;
    plan_->graph_ids = std::move(order_);
    return std::move(plan_);
  }

 private:
  absl::Status ForNode(NodeId id, const absl::Status& status) const {
    if (status.ok()) return status;
    const Node& node = graph_.node(id);
    return absl::Status(status.code(), absl::StrCat("node '", node.name, "' (", node.op, "): ", status.message()));
  }

  // _Send and _Recv of one pair, so that the Recv can read what the Send was given.
  void FindTransfers() {
    for (const Transfer& t : in_.compiled->transfers) {
      if (static_cast<size_t>(t.pair) >= send_of_pair_.size()) send_of_pair_.resize(t.pair + 1, kNoNode);
      send_of_pair_[t.pair] = t.send;
    }
  }

  absl::Status AddDraft(NodeId id) {
    const Node& node = graph_.node(id);
    Draft draft;
    draft.id = id;
    if (node.schema == nullptr) return absl::InternalError("a call of a function was left by lowering");
    draft.role = node.schema->role;
    draft.first_input = static_cast<uint32_t>(inputs_.size());
    draft.num_inputs = static_cast<uint32_t>(node.num_data_inputs);
    inputs_.insert(inputs_.end(), node.data_inputs().begin(), node.data_inputs().end());
    draft.num_outputs = node.num_outputs();
    THALWEG_RETURN_IF_ERROR(MakeInfo(node, id));
    if (const auto fault = in_.compiled->faults.find(id); fault != in_.compiled->faults.end()) {
      draft.kernel = Own(std::make_shared<FaultyKernel>(fault->second));
      draft.kind = NodeKind::kKernel;
    } else {
      THALWEG_RETURN_IF_ERROR(SetKind(node, draft));
    }
    draft.nanos = static_cast<float>(EstimatedNanos(CostOf(graph_, in_.compiled->shapes, id, InfoOf(draft))));
    drafts_.push_back(std::move(draft));
    return absl::OkStatus();
  }

  KernelNode& InfoOf(const Draft& draft) { return plan_->infos[draft.id]; }
  const KernelNode& InfoOf(const Draft& draft) const { return plan_->infos[draft.id]; }

  absl::Span<Endpoint> InputsOf(const Draft& draft) { return absl::MakeSpan(inputs_).subspan(draft.first_input, draft.num_inputs); }
  absl::Span<const Endpoint> InputsOf(const Draft& draft) const {
    return absl::MakeConstSpan(inputs_).subspan(draft.first_input, draft.num_inputs);
  }

  Kernel* Own(std::shared_ptr<Kernel> kernel) {
    plan_->kernels.push_back(std::move(kernel));
    return plan_->kernels.back().get();
  }

  // Few signatures serve many nodes. signature_ is that of the node whose draft is being made.
  void Sign(KernelNode& info) { info.signature = &*plan_->signatures.insert(signature_).first; }

  absl::Status MakeInfo(const Node& node, NodeId id) {
    KernelNode& info = plan_->infos.emplace_back();
    info.name = node.name;
    info.schema = node.schema;
    info.attrs = &node.attrs;
    info.device = in_.devices[node.device].get();
    info.id = id;
    plan_->has_references |= std::any_of(node.output_types.begin(), node.output_types.end(), IsRef);
    THALWEG_RETURN_IF_ERROR(ResolveInputTypes(node.node_attrs(), &signature_.input_types));
    signature_.output_types.assign(node.output_types.begin(), node.output_types.end());
    signature_.input_memory.assign(signature_.input_types.size(), MemoryKind::kHost);
    signature_.output_memory.assign(signature_.output_types.size(), MemoryKind::kHost);
    Sign(info);
    return absl::OkStatus();
  }

  // Arguments of a device with memory of its own are there unless the kernel says host, or the type cannot leave it.
  absl::Status SetMemory(const Node& node, const KernelDef& def, KernelNode& info) {
    if (info.device->memory() == MemoryKind::kHost) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(const HostArguments host, FindHostArguments(node, signature_.input_types, &def));
    const auto memory = [](bool on_host) { return on_host ? MemoryKind::kHost : MemoryKind::kDevice; };
    std::transform(host.inputs.begin(), host.inputs.end(), signature_.input_memory.begin(), memory);
    std::transform(host.outputs.begin(), host.outputs.end(), signature_.output_memory.begin(), memory);
    Sign(info);
    return absl::OkStatus();
  }

  absl::Status SetKind(const Node& node, Draft& draft) {
    switch (draft.role) {
      case OpRole::kNoOp:
        return absl::OkStatus();
      case OpRole::kArg:
      case OpRole::kRetval:
        draft.kind = draft.role == OpRole::kArg ? NodeKind::kArg : NodeKind::kRetval;
        draft.aux = node.node_attrs().GetOr<int32_t>("index", 0);
        return absl::OkStatus();
      case OpRole::kSend:
        draft.kind = NodeKind::kPass;
        draft.num_outputs = 1;
        return absl::OkStatus();
      case OpRole::kRecv:
        return SetRecvKind(node, draft);
      case OpRole::kConstant:
      case OpRole::kNormal:
        break;
      default:
        return SetControlKind(node, draft);
    }
    if (HandsInputOn(node) && !IsRef(graph_.node(node.inputs[0].node).output_types[node.inputs[0].port])) {
      draft.kind = NodeKind::kPass;
    }
    KernelNode& info = InfoOf(draft);
    THALWEG_ASSIGN_OR_RETURN(const KernelDef* def, in_.kernels->Find(node.node_attrs(), info.device->backend()));
    THALWEG_RETURN_IF_ERROR(SetMemory(node, *def, info));
    if (draft.role == OpRole::kConstant) return MakeConstant(node, draft);
    if (draft.kind == NodeKind::kPass) return absl::OkStatus();
    if (IsKeptCall(node)) return MakeCall(node, draft);
    THALWEG_ASSIGN_OR_RETURN(draft.kernel, KernelOf(node, info, *def));
    draft.kind = draft.kernel->is_async() ? NodeKind::kAsync : NodeKind::kKernel;
    return absl::OkStatus();
  }

  absl::StatusOr<Kernel*> KernelOf(const Node& node, const KernelNode& info, const KernelDef& def) {
    std::shared_ptr<Kernel> kernel;
    if (node.stateful() && in_.stateful != nullptr && node.origin != kNoNode) {
      THALWEG_ASSIGN_OR_RETURN(kernel, in_.stateful->GetOrCreate(StateKey(node, info.device->backend()), info, def));
    } else {
      const LikeNodes like(&def, info.device, info.signature, node.attrs.identity());
      if (const auto found = kernel_of_like_nodes_.find(like); found != kernel_of_like_nodes_.end()) return found->second;
      THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> made, MakeKernelOf(node, info, def));
      kernel = WithTextAccounting(std::move(made), info);
      const bool is_wrapped = ShapeCheckWanted() || in_.check_numerics != NumericsCheck::kOff;
      if (kernel->suits_like_nodes() && !is_wrapped) kernel_of_like_nodes_.emplace(like, kernel.get());
    }
    kernel = WithNumericsCheck(std::move(kernel), info, in_.check_numerics);
    if (ShapeCheckWanted()) kernel = WithShapeCheck(std::move(kernel), ShapesOf(node, info.id));
    return Own(std::move(kernel));
  }

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernelOf(const Node& node, const KernelNode& info, const KernelDef& def) {
    const std::vector<PartialShape> shapes = InputShapes(node);
    std::vector<TensorLiteralPtr> constants;
    if (in_.pack_constants) {
      for (Endpoint e : node.data_inputs()) constants.push_back(in_.compiled->shapes.literal(e));
    }
    return def.factory(KernelInit(info, shapes, in_.threads, constants));
  }

  std::vector<PartialShape> InputShapes(const Node& node) const {
    std::vector<PartialShape> shapes;
    for (Endpoint e : node.data_inputs()) shapes.push_back(in_.compiled->shapes.output(e));
    return shapes;
  }

  NodeShapes ShapesOf(const Node& node, NodeId id) const {
    NodeShapes shapes = {.inputs = InputShapes(node), .outputs = {}};
    for (int i = 0; i < node.num_outputs(); ++i) shapes.outputs.push_back(in_.compiled->shapes.output(id, i));
    return shapes;
  }

  absl::Status SetControlKind(const Node& node, Draft& draft) {
    KernelNode& info = InfoOf(draft);
    THALWEG_ASSIGN_OR_RETURN(const KernelDef* def, in_.kernels->Find(node.node_attrs(), info.device->backend()));
    THALWEG_RETURN_IF_ERROR(SetMemory(node, *def, info));
    switch (draft.role) {
      case OpRole::kSwitch:
        draft.kind = NodeKind::kSwitch;
        break;
      case OpRole::kMerge:
        draft.kind = NodeKind::kMerge;
        break;
      case OpRole::kEnter:
        draft.kind = NodeKind::kEnter;
        break;
      case OpRole::kExit:
        draft.kind = NodeKind::kExit;
        break;
      case OpRole::kNextIteration:
        draft.kind = NodeKind::kNextIteration;
        break;
      case OpRole::kLoopCond:
        draft.kind = NodeKind::kPass;
        break;
      default:
        draft.kind = NodeKind::kNoOp;  // ControlTrigger: what matters is when it is live
    }
    return absl::OkStatus();
  }

  // What lowering leaves of a call.
  absl::Status MakeCall(const Node& node, Draft& draft) {
    if (in_.functions == nullptr) return absl::InternalError("a plan of calls was built without functions to call");
    THALWEG_ASSIGN_OR_RETURN(FunctionRef function, node.node_attrs().Get<FunctionRef>("f"));
    const bool all_stateful = node.node_attrs().GetOr<bool>("all_stateful", true);
    draft.kernel = Own(in_.functions->KernelFor(function, all_stateful ? Effects::kAllStateful : Effects::kControlResults));
    draft.kind = NodeKind::kAsync;
    return absl::OkStatus();
  }

  absl::Status SetRecvKind(const Node& node, Draft& draft) {
    const int32_t pair = node.node_attrs().GetOr<int32_t>("pair", -1);
    if (pair < 0 || static_cast<size_t>(pair) >= send_of_pair_.size() || send_of_pair_[pair] == kNoNode) {
      return absl::InternalError(absl::StrCat("_Recv of pair ", pair, " has no _Send"));
    }
    const Transfer& transfer = in_.compiled->transfers[pair];
    draft.num_inputs = 1;
    inputs_.push_back({send_of_pair_[pair], 0});
    const auto memory = [](bool on_host) { return on_host ? MemoryKind::kHost : MemoryKind::kDevice; };
    signature_.input_types = signature_.output_types;
    signature_.input_memory = {memory(transfer.source_on_host)};
    signature_.output_memory = {memory(transfer.destination_on_host)};
    Sign(InfoOf(draft));
    const bool same_memory = transfer.source_on_host == transfer.destination_on_host &&
                             (transfer.source_on_host || transfer.source_device == transfer.destination_device);
    draft.kind = same_memory ? NodeKind::kPass : NodeKind::kTransfer;
    draft.transfer_source = transfer.source_device;
    return absl::OkStatus();
  }

  absl::Status MakeConstant(const Node& node, Draft& draft) {
    THALWEG_ASSIGN_OR_RETURN(TensorLiteralPtr literal, node.node_attrs().Get<TensorLiteralPtr>("value"));
    // A plan lives as long as its session's devices, so its constants may be charged to them.
    Device& host = *in_.devices[0];
    THALWEG_ASSIGN_OR_RETURN(Tensor constant, Tensor::FromLiteral(literal, host.allocator()));
    if (absl::Status status = CheckNumerics("output 0", constant, in_.check_numerics); !status.ok()) {
      // It fails when it runs, which in a branch that is not taken it does not.
      draft.kernel = Own(std::make_shared<FaultyKernel>(std::move(status)));
      draft.kind = NodeKind::kKernel;
      draft.role = OpRole::kNormal;
      return absl::OkStatus();
    }
    draft.constant = std::make_unique<Tensor>(std::move(constant));
    const KernelNode& info = InfoOf(draft);
    if (info.output_memory()[0] == MemoryKind::kHost) return absl::OkStatus();
    auto copied = std::make_shared<absl::StatusOr<Tensor>>(absl::InternalError("the copy of a constant to its device did not finish"));
    copied_constants_.emplace_back(draft.id, copied);
    info.device->CopyFromHost(*std::move(draft.constant), draft.id, [copied](absl::StatusOr<Tensor> t) { *copied = std::move(t); });
    return absl::OkStatus();
  }

  // Waits for the copies that MakeConstant began, once for all: waiting for each costs two switches of threads.
  absl::Status TakeCopiedConstants() {
    if (copied_constants_.empty()) return absl::OkStatus();
    for (const std::shared_ptr<Device>& device : in_.devices) THALWEG_RETURN_IF_ERROR(device->Synchronize());
    for (auto& [id, copied] : copied_constants_) {
      if (!copied->ok()) return ForNode(id, copied->status());
      *drafts_[id].constant = *std::move(*copied);
    }
    copied_constants_.clear();
    return absl::OkStatus();
  }

  // Partitioning put a transfer on every edge whose ends are in different memories (B12); one that it missed would let a kernel
  // read memory that is not its own (B16).
  absl::Status CheckMemoryKinds() const {
    const auto has_host_memory = [](const std::shared_ptr<Device>& device) { return device->memory() == MemoryKind::kHost; };
    if (std::all_of(in_.devices.begin(), in_.devices.end(), has_host_memory)) return absl::OkStatus();
    for (const Draft& reader : drafts_) {
      if (reader.role == OpRole::kSend || reader.role == OpRole::kRecv) continue;  // where their pair says
      const absl::Span<const Endpoint> inputs = InputsOf(reader);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const KernelNode& writer = InfoOf(drafts_[inputs[i].node]);
        const MemoryKind written = writer.output_memory()[inputs[i].port], read = InfoOf(reader).input_memory()[i];
        if (written == read) continue;
        const auto text = [](MemoryKind memory) { return memory == MemoryKind::kHost ? "host" : "device"; };
        return ForNode(reader.id, absl::InternalError(absl::StrCat("input ", i, " is wanted in ", text(read), " memory, but '", writer.name, "' (",
                                                                   writer.device->name().ToShortString(), ") leaves it in ", text(written), " memory")));
      }
    }
    return absl::OkStatus();
  }

  // By graph id, each once; `accept(p)` says which count.
  template <typename Accept>
  NodeLists Predecessors(Accept accept) const {
    NodeLists lists;
    lists.Reserve(drafts_.size());
    std::vector<int32_t> found;
    for (const Draft& draft : drafts_) {
      found.clear();
      for (Endpoint e : InputsOf(draft)) found.push_back(e.node);
      for (Endpoint e : graph_.node(draft.id).control_inputs()) found.push_back(e.node);
      found.erase(std::remove_if(found.begin(), found.end(), [&](int32_t p) { return !accept(p); }), found.end());
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      lists.Append(found);
    }
    return lists;
  }

  // Fills order_ (graph ids, producers first) and, for plans of several threads or with asynchronous nodes, the segments.
  absl::Status Order() {
    const NodeLists predecessors = Predecessors([](int32_t) { return true; });
    THALWEG_RETURN_IF_ERROR(SortTopologically(predecessors));
    MakeSegments(predecessors);
    StorePredecessors(predecessors);
    return absl::OkStatus();
  }

  // Cuts the order into segments if it pays.
  void MakeSegments(const NodeLists& predecessors) {
    const bool any_async = std::any_of(drafts_.begin(), drafts_.end(), IsAsync);
    if (!any_async && in_.threads == 1) return;
    const int n = graph_.num_nodes();
    std::vector<int32_t> position(n);
    for (int i = 0; i < n; ++i) position[order_[i]] = i;
    std::vector<SegmentNode> nodes(n);
    for (int i = 0; i < n; ++i) {
      const Draft& draft = drafts_[order_[i]];
      nodes[i].asynchronous = IsAsync(draft);
      nodes[i].device = graph_.node(order_[i]).device;
      nodes[i].nanos = kNodeOverheadNanos + draft.nanos;
    }
    const NodeLists by_position = predecessors.Permuted(order_, position);
    if (!any_async && ParallelGainNanos(nodes, by_position, in_.threads) < kWorthParallelNanos) return;
    plan_->execution = Execution::kSegments;
    plan_->segments = BuildSegments(nodes, by_position);
    std::vector<NodeId> order(n);
    for (int i = 0; i < n; ++i) order[i] = order_[plan_->segments.order[i]];
    order_ = std::move(order);
    plan_->measured_nanos = std::make_unique<std::atomic<float>[]>(plan_->segments.segments.size());
  }

  // Conditionals or loops: without them nothing can be dead.
  bool HasControlFlow() const {
    return std::any_of(drafts_.begin(), drafts_.end(), [](const Draft& draft) {
      switch (draft.kind) {
        case NodeKind::kSwitch:
        case NodeKind::kMerge:
        case NodeKind::kEnter:
        case NodeKind::kExit:
        case NodeKind::kNextIteration:
          return true;
        default:
          return false;
      }
    });
  }

  // A node that only hands its input on costs a move in every iteration. Its readers are given the input itself.
  void ReadThroughNodes() {
    std::vector<uint8_t> read_by_merge(drafts_.size(), 0);
    for (const Draft& draft : drafts_) {
      if (draft.kind != NodeKind::kMerge) continue;
      for (Endpoint e : InputsOf(draft)) read_by_merge[e.node] = 1;
    }
    for (Draft& draft : drafts_) draft.read_through = !read_by_merge[draft.id] && MayBeReadThrough(draft);
    for (Draft& draft : drafts_) {
      for (Endpoint& e : InputsOf(draft)) {
        while (drafts_[e.node].read_through) e = InputsOf(drafts_[e.node])[0];
      }
    }
    for (Draft& draft : drafts_) {
      if (!draft.read_through) continue;
      draft.kind = NodeKind::kNoOp;
      draft.num_outputs = 0;
    }
  }

  // Transfers stay, for traces; and what comes from another frame or iteration, which is delivered in its own way.
  bool MayBeReadThrough(const Draft& draft) const {
    if (draft.kind != NodeKind::kPass || (draft.role != OpRole::kNormal && draft.role != OpRole::kLoopCond)) return false;
    if (!graph_.node(draft.id).control_inputs().empty()) return false;
    const Endpoint source = InputsOf(draft)[0];
    return ActivatesOwnIteration(source.node) && !IsRef(graph_.node(source.node).output_types[source.port]);
  }

  bool ActivatesOwnIteration(NodeId id) const {
    const OpRole role = drafts_[id].role;
    return role != OpRole::kEnter && role != OpRole::kExit && role != OpRole::kNextIteration;
  }

  void MakeFlowGraph() {
    ReadThroughNodes();
    const ControlFlow& control_flow = in_.compiled->control_flow;
    flow_.frames = control_flow.frames;
    flow_.nodes.resize(drafts_.size());
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node(id);
      FlowNode& flow = flow_.nodes[id];
      flow.role = drafts_[id].role;
      flow.frame = FrameOf(id);
      flow.output_frame = OutputFrameOf(id);
      const absl::Span<const Endpoint> inputs = InputsOf(drafts_[id]);
      flow.data.assign(inputs.begin(), inputs.end());
      for (Endpoint e : node.control_inputs()) flow.controls.push_back(e.node);
      flow.num_outputs = drafts_[id].num_outputs;
      flow.is_constant_enter = IsKeptByFrame(node);
      flow.hands_input_on = HandsInputOn(node);
      flow.read_through = drafts_[id].read_through;
    }
  }

  absl::Status OrderControlFlow() {
    plan_->frames = flow_.frames;
    const NodeLists predecessors = ForwardPredecessors();
    std::optional<ReplayOrder> order;
    if (!in_.general_frames && !IsWorthParallel(predecessors)) {
      plan_->guards = FindGuards(flow_);
      if (!plan_->guards.too_complex) order = FindReplayOrder(flow_, plan_->guards);
    }
    if (order) {
      plan_->execution = Execution::kReplay;
      order_ = order->nodes;
      replay_order_ = *std::move(order);
    } else {
      plan_->execution = Execution::kFrames;
      for (NodeId id = 0; id < graph_.num_nodes(); ++id) order_.push_back(id);
      plan_->frame_plan = MakeFramePlan(flow_, order_);
      plan_->frame_plan.check_completion = ChecksCompletion();
      plan_->frame_plan.one_thread = in_.threads == 1 && std::none_of(drafts_.begin(), drafts_.end(), IsAsync);
      for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
        plan_->frame_plan.nodes[id].expensive = drafts_[id].nanos >= kExpensiveNodeNanos && !IsAsync(drafts_[id]);
      }
    }
    StorePredecessors(predecessors);
    AddMergeIndices();
    return absl::OkStatus();
  }

  static bool IsAsync(const Draft& draft) { return draft.kind == NodeKind::kAsync || draft.kind == NodeKind::kTransfer; }

  // Whether a graph with control flow must or should run on more than the calling thread.
  bool IsWorthParallel(const NodeLists& predecessors) const {
    std::vector<SegmentNode> nodes(drafts_.size());
    for (const Draft& draft : drafts_) {
      if (IsAsync(draft)) return true;
      nodes[draft.id].nanos = kNodeOverheadNanos + draft.nanos;
    }
    return in_.threads > 1 && ParallelGainNanos(nodes, predecessors, in_.threads) >= kWorthParallelNanos;
  }

  void AddMergeIndices() {
    size_t most_merged = 0;
    for (const FlowNode& node : flow_.nodes) most_merged = std::max(most_merged, node.role == OpRole::kMerge ? node.data.size() : 0);
    for (size_t i = 0; i < most_merged; ++i) plan_->merge_indices.push_back(*Tensor::Scalar<int32_t>(static_cast<int32_t>(i)));
  }

  int32_t FrameOf(NodeId id) const { return in_.compiled->control_flow.frame_of[id]; }
  int32_t OutputFrameOf(NodeId id) const { return in_.compiled->control_flow.OutputFrame(graph_.node(id), id); }

  // Without the edges that close loops.
  NodeLists ForwardPredecessors() const {
    return Predecessors([this](int32_t p) { return drafts_[p].role != OpRole::kNextIteration; });
  }

  // The compiled graph is in topological order but for the edges from _Send to _Recv.
  absl::Status SortTopologically(const NodeLists& predecessors) {
    const int n = graph_.num_nodes();
    order_.reserve(n);
    if (send_of_pair_.empty()) {
      for (NodeId id = 0; id < n; ++id) order_.push_back(id);
      return absl::OkStatus();
    }
    std::vector<int32_t> missing(n);
    const NodeLists successors = predecessors.Reversed();
    std::priority_queue<NodeId, std::vector<NodeId>, std::greater<NodeId>> ready;
    for (NodeId id = 0; id < n; ++id) {
      missing[id] = static_cast<int32_t>(predecessors[id].size());
      if (missing[id] == 0) ready.push(id);
    }
    while (!ready.empty()) {
      const NodeId id = ready.top();
      ready.pop();
      order_.push_back(id);
      for (int32_t s : successors[id]) {
        if (--missing[s] == 0) ready.push(s);
      }
    }
    if (static_cast<int>(order_.size()) != n) return absl::InternalError("the partitioned graph has a cycle through its transfers");
    return absl::OkStatus();
  }

  void StorePredecessors(const NodeLists& predecessors) {
    const int n = graph_.num_nodes();
    position_.resize(n);
    for (int i = 0; i < n; ++i) position_[order_[i]] = i;
    plan_->predecessors.reserve(predecessors.num_items());
    plan_->predecessor_offsets.reserve(n + 1);
    plan_->predecessor_offsets.push_back(0);
    for (NodeId id : order_) {
      for (int32_t p : predecessors[id]) plan_->predecessors.push_back(position_[p]);
      plan_->predecessor_offsets.push_back(static_cast<int32_t>(plan_->predecessors.size()));
    }
  }

  // Constants come first; their slots are filled once and never cleared.
  void LayOutSlots() {
    first_slot_.resize(drafts_.size());
    for (Draft& draft : drafts_) {
      if (draft.constant == nullptr) continue;
      first_slot_[draft.id] = plan_->num_slots++;
      plan_->constants.push_back(*std::move(draft.constant));
      draft.constant.reset();
    }
    for (NodeId id : order_) {
      if (drafts_[id].role == OpRole::kConstant) continue;
      first_slot_[id] = plan_->num_slots;
      plan_->num_slots += drafts_[id].num_outputs;
    }
  }

  // Slots of a frame are contiguous, its constants first.
  void LayOutFrameSlots() {
    first_slot_.resize(drafts_.size());
    std::vector<std::vector<NodeId>> constants(flow_.frames.size()), others(flow_.frames.size());
    std::vector<int32_t> dereferences(flow_.frames.size(), 0);
    for (Draft& draft : drafts_) {
      const FlowNode& node = flow_.nodes[draft.id];
      (draft.constant != nullptr ? constants : others)[node.output_frame].push_back(draft.id);
      dereferences[node.frame] += CountDereferences(draft);
    }
    for (size_t f = 0; f < flow_.frames.size(); ++f) {
      FramePlanFrame& frame = plan_->frame_plan.frames[f];
      frame.first_slot = slot_base_[f] = static_cast<uint32_t>(plan_->num_slots);
      for (NodeId id : constants[f]) {
        first_slot_[id] = plan_->num_slots++;
        frame.constants.emplace_back(first_slot_[id] - frame.first_slot, *std::move(drafts_[id].constant));
      }
      for (NodeId id : others[f]) {
        first_slot_[id] = plan_->num_slots;
        plan_->num_slots += drafts_[id].num_outputs;
      }
      dereference_slots_.push_back(plan_->num_slots);
      plan_->num_slots += dereferences[f];
      frame.num_slots = static_cast<uint32_t>(plan_->num_slots) - frame.first_slot;
    }
  }

  void LayOutNodes() {
    plan_->nodes.reserve(order_.size());
    plan_->input_slots.reserve(inputs_.size());
    for (NodeId id : order_) {
      const Draft& draft = drafts_[id];
      const absl::Span<const Endpoint> inputs = InputsOf(draft);
      PlanNode node;
      node.kind = draft.kind;
      node.kernel = draft.kernel;
      node.info = &InfoOf(draft);
      node.first_input = static_cast<uint32_t>(plan_->input_slots.size());
      node.num_inputs = draft.kind == NodeKind::kNoOp ? 0 : draft.num_inputs;
      node.first_output = first_slot_[id] - slot_base_[OutputFrameOf(id)];
      node.num_outputs = draft.role == OpRole::kConstant ? 0 : static_cast<uint16_t>(draft.num_outputs);
      node.aux = draft.aux;
      if (draft.kind == NodeKind::kAsync || draft.kind == NodeKind::kTransfer) {
        node.aux = plan_->num_async++;
        plan_->transfer_source.push_back(draft.transfer_source);
      }
      for (uint32_t i = 0; i < node.num_inputs; ++i) {
        plan_->input_slots.push_back(first_slot_[inputs[i].node] + inputs[i].port - slot_base_[FrameOf(id)]);
      }
      AddDereferences(draft, &node);
      plan_->nodes.push_back(node);
    }
  }

  bool NeedsDereference(const Draft& draft, size_t input) const {
    if (draft.kind == NodeKind::kRetval || draft.kind == NodeKind::kNoOp) return false;
    const Endpoint e = InputsOf(draft)[input];
    const NodeTypes& given = graph_.node(e.node).output_types;
    return e.port < static_cast<int32_t>(given.size()) && IsRef(given[e.port]) && !IsRef(InfoOf(draft).input_types()[input]);
  }

  int32_t CountDereferences(const Draft& draft) const {
    int32_t count = 0;
    for (size_t i = 0; i < draft.num_inputs; ++i) count += NeedsDereference(draft, i) ? 1 : 0;
    return count;
  }

  uint32_t NewDereferenceSlot(int32_t frame) {
    if (plan_->execution != Execution::kFrames) return static_cast<uint32_t>(plan_->num_slots++);
    return static_cast<uint32_t>(dereference_slots_[frame]++) - slot_base_[frame];
  }

  // Inputs that take a tensor but are given a reference get a slot of their own to read it into.
  void AddDereferences(const Draft& draft, PlanNode* node) {
    std::vector<Dereference> found;
    for (uint32_t i = 0; i < node->num_inputs; ++i) {
      if (!NeedsDereference(draft, i)) continue;
      uint32_t& slot = plan_->input_slots[node->first_input + i];
      found.push_back({slot, NewDereferenceSlot(FrameOf(draft.id))});
      slot = found.back().tensor_slot;
    }
    if (found.empty()) return;
    node->has_dereferences = true;
    plan_->dereferences.emplace(static_cast<int32_t>(plan_->nodes.size()), std::move(found));
  }

  // The slots that a node reads: those of its inputs and those of the references behind them.
  using SlotList = absl::InlinedVector<uint32_t, 8>;
  SlotList SlotsRead(size_t n) const {
    const PlanNode& node = plan_->nodes[n];
    const auto begin = plan_->input_slots.begin() + node.first_input;
    SlotList slots(begin, begin + node.num_inputs);
    if (!node.has_dereferences) return slots;
    for (const Dereference& d : plan_->dereferences.at(static_cast<int32_t>(n))) slots.push_back(d.reference_slot);
    return slots;
  }

  // Static liveness. In one-thread order a value dies at its last reader; in any order only a sole reader is surely last.
  void FindLastUses() {
    Plan& plan = *plan_;
    const std::vector<uint8_t> kept = KeptSlots();
    plan.readers.assign(plan.num_slots, 0);
    for (size_t n = 0; n < plan.nodes.size(); ++n) {
      for (uint32_t slot : SlotsRead(n)) plan.readers[slot] += kept[slot] ? 0 : 1;
    }
    plan.last_use.assign(plan.input_slots.size(), 0);
    plan.sole_use.assign(plan.input_slots.size(), 0);
    std::vector<uint8_t> read_later(plan.num_slots, 0);
    const std::vector<uint8_t> stays = SlotsOfPredicates();
    // From the last node to the first; turned round below.
    std::vector<uint32_t>& releases = plan.releases;
    for (size_t n = plan.nodes.size(); n-- > 0;) {
      PlanNode& node = plan.nodes[n];
      const size_t released_later = releases.size();
      for (uint32_t slot = node.first_output; slot < node.first_output + node.num_outputs; ++slot) {
        if (plan.readers[slot] == 0 && !kept[slot]) releases.push_back(slot);
      }
      const SlotList slots = SlotsRead(n);
      for (uint32_t i = 0; i < slots.size(); ++i) {
        const uint32_t slot = slots[i];
        if (kept[slot]) continue;
        if (i < node.num_inputs) plan.sole_use[node.first_input + i] = plan.readers[slot] == 1;
        if (read_later[slot]) continue;
        read_later[slot] = 1;
        if (!stays[slot]) releases.push_back(slot);
        // A node that reads a value twice must not take it over while it still reads it through the other input.
        if (i < node.num_inputs) plan.last_use[node.first_input + i] = std::count(slots.begin(), slots.end(), slot) == 1;
      }
      node.num_releases = static_cast<uint32_t>(releases.size() - released_later);
    }
    std::reverse(releases.begin(), releases.end());
    uint32_t first_release = 0;
    for (PlanNode& node : plan.nodes) {
      node.first_release = first_release;
      first_release += node.num_releases;
    }
  }

  // What kernels compute for Switches alone stays where it is until it is computed again: its memory serves every iteration.
  std::vector<uint8_t> SlotsOfPredicates() const {
    std::vector<uint8_t> stays(plan_->num_slots, 0);
    if (flow_.nodes.empty()) return stays;
    for (size_t n = 0; n < plan_->nodes.size(); ++n) {
      const PlanNode& node = plan_->nodes[n];
      if (node.kind == NodeKind::kKernel && node.num_outputs == 1) stays[slot_base_[FrameOf(order_[n])] + node.first_output] = 1;
    }
    for (size_t n = 0; n < plan_->nodes.size(); ++n) {
      const SlotList slots = SlotsRead(n);
      const bool is_switch = plan_->nodes[n].kind == NodeKind::kSwitch;
      for (size_t i = 0; i < slots.size(); ++i) {
        if (!is_switch || i != 1) stays[slot_base_[FrameOf(order_[n])] + slots[i]] = 0;
      }
    }
    for (int32_t slot = 0; slot < plan_->num_slots; ++slot) {
      if (plan_->readers[slot] == 0) stays[slot] = 0;
    }
    return stays;
  }

  // Readers count slots down in every iteration. What a Merge reads together with others stays until the iteration retires, because a
  // Merge runs before all its inputs are there.
  void FindFrameReaders() {
    constexpr int32_t kKept = -1;
    Plan& plan = *plan_;
    plan.readers.assign(plan.num_slots, 0);
    std::vector<uint8_t> read_by_merge(plan.num_slots, 0);
    for (size_t n = 0; n < plan.nodes.size(); ++n) {
      const uint32_t base = slot_base_[plan.frame_plan.nodes[n].frame];
      for (uint32_t slot : SlotsRead(n)) {
        ++plan.readers[base + slot];
        read_by_merge[base + slot] |= plan.nodes[n].kind == NodeKind::kMerge;
      }
    }
    const std::vector<uint8_t> stays = SlotsOfPredicates();
    for (FramePlanFrame& frame : plan.frame_plan.frames) {
      for (size_t i = 0; i < frame.constants.size(); ++i) plan.readers[frame.first_slot + i] = kKept;
      for (uint32_t slot = 0; slot < frame.num_slots; ++slot) {
        int32_t& readers = plan.readers[frame.first_slot + slot];
        if (readers > 1 && read_by_merge[frame.first_slot + slot]) readers = kKept;
        if (stays[frame.first_slot + slot]) readers = kKept;
        else if (slot >= frame.constants.size()) frame.cleared.push_back(slot);
        if (readers > 1) frame.shared_slots.emplace_back(slot, readers);
      }
    }
    plan.last_use.assign(plan.input_slots.size(), 0);
    plan.sole_use.assign(plan.input_slots.size(), 0);
    for (size_t n = 0; n < plan.nodes.size(); ++n) {
      const PlanNode& node = plan.nodes[n];
      const uint32_t base = slot_base_[plan.frame_plan.nodes[n].frame];
      for (uint32_t i = node.first_input; i < node.first_input + node.num_inputs; ++i) {
        const int32_t readers = plan.readers[base + plan.input_slots[i]];
        plan.sole_use[i] = readers == 1;
        plan.frame_plan.nodes[n].counts_readers |= readers > 1;
      }
      AddFrameReleases(n, base);
    }
  }

  // What a node counts down when it has run. Inputs of a Merge stay: some may be yet to come.
  void AddFrameReleases(size_t n, uint32_t base) {
    PlanNode& node = plan_->nodes[n];
    node.first_release = static_cast<uint32_t>(plan_->releases.size());
    if (node.kind == NodeKind::kMerge) return;
    for (uint32_t slot : SlotsRead(n)) {
      if (plan_->readers[base + slot] > 0) plan_->releases.push_back(slot);
    }
    node.num_releases = static_cast<uint32_t>(plan_->releases.size()) - node.first_release;
  }

  // Tells kernels that somebody reads every input after them.
  void KeepInputsOfKernels() {
    plan_->forwards_inputs = false;
    for (const PlanNode& node : plan_->nodes) {
      if (node.kind != NodeKind::kKernel && node.kind != NodeKind::kAsync) continue;
      std::fill_n(plan_->last_use.begin() + node.first_input, node.num_inputs, 0);
      std::fill_n(plan_->sole_use.begin() + node.first_input, node.num_inputs, 0);
    }
  }

  // Slots that no reader releases: constants, and what a frame keeps over its iterations.
  std::vector<uint8_t> KeptSlots() const {
    std::vector<uint8_t> kept(plan_->num_slots, 0);
    std::fill_n(kept.begin(), plan_->constants.size(), 1);
    for (const Draft& draft : drafts_) {
      if (draft.kind == NodeKind::kEnter && flow_.nodes[draft.id].is_constant_enter) kept[first_slot_[draft.id]] = 1;
    }
    return kept;
  }

  // Turns guards and what they concern into the ranges that the replay executor walks.
  void LayOutReplay() {
    ReplayPlan& replay = plan_->replay;
    replay.frames = replay_order_.frames;
    replay.runs = replay_order_.runs;
    replay.num_flags = static_cast<int32_t>(plan_->guards.guards.size());
    for (size_t r = 0; r < replay.runs.size(); ++r) {
      ReplayRun& run = replay.runs[r];
      run.guard = FlagsOf(replay_order_.guards[r]);
      run.cleared = run.child >= 0 ? NewFlags(ExitFlags(run.child)) : NewFlags(FlagsSetBy(run.nodes));
      run.released = NewSlots(ReleasedFromElsewhere(run.nodes));
    }
    for (size_t f = 0; f < replay.frames.size(); ++f) {
      std::vector<int32_t> entry_flags;
      std::vector<uint32_t> invariants;
      for (NodeId enter : flow_.frames[f].enters) {
        if (plan_->guards.flag_of_node[enter] != kAlways) entry_flags.push_back(plan_->guards.flag_of_node[enter]);
        if (flow_.nodes[enter].is_constant_enter) invariants.push_back(first_slot_[enter]);
      }
      replay.frames[f].entry_flags = NewFlags(entry_flags);
      replay.frames[f].invariants = NewSlots(invariants);
      replay.frames[f].exit_flags = NewFlags(ExitFlags(static_cast<int32_t>(f)));
    }
    for (size_t n = 0; n < plan_->nodes.size(); ++n) AddReplayControl(order_[n], &plan_->nodes[n]);
  }

  ReplayRange AddBusyNodes(ReplayRange nodes) {
    std::vector<int32_t>& list = plan_->replay.busy_nodes;
    const int32_t begin = static_cast<int32_t>(list.size());
    for (int32_t n = nodes.begin; n < nodes.end; ++n) {
      if (plan_->nodes[n].kind != NodeKind::kNoOp) list.push_back(n);
    }
    return {begin, static_cast<int32_t>(list.size())};
  }

  ReplayRange FlagsOf(GuardId id) {
    std::vector<int32_t>& list = plan_->replay.guard_flags;
    const int32_t begin = static_cast<int32_t>(list.size());
    const Guard& guard = plan_->guards.guards[id];
    if (!guard.all.empty()) list.insert(list.end(), guard.all.begin(), guard.all.end());
    else if (id != kAlways) list.push_back(id);
    return {begin, static_cast<int32_t>(list.size())};
  }

  ReplayRange NewFlags(const std::vector<int32_t>& flags) {
    std::vector<int32_t>& list = plan_->replay.flags;
    const int32_t begin = static_cast<int32_t>(list.size());
    list.insert(list.end(), flags.begin(), flags.end());
    return {begin, static_cast<int32_t>(list.size())};
  }

  ReplayRange NewSlots(const std::vector<uint32_t>& slots) {
    std::vector<uint32_t>& list = plan_->replay.slots;
    const int32_t begin = static_cast<int32_t>(list.size());
    list.insert(list.end(), slots.begin(), slots.end());
    return {begin, static_cast<int32_t>(list.size())};
  }

  std::vector<int32_t> ExitFlags(int32_t frame) const {
    std::vector<int32_t> flags;
    for (NodeId exit : flow_.frames[frame].exits) {
      if (plan_->guards.flag_of_node[exit] != kAlways) flags.push_back(plan_->guards.flag_of_node[exit]);
    }
    return flags;
  }

  // An Exit's flag is not among them: it may have been set in an earlier iteration.
  std::vector<int32_t> FlagsSetBy(ReplayRange nodes) const {
    std::vector<int32_t> flags;
    for (int32_t n = nodes.begin; n < nodes.end; ++n) {
      const NodeId id = order_[n];
      flags.insert(flags.end(), plan_->guards.branch_flags[id].begin(), plan_->guards.branch_flags[id].end());
      if (plan_->guards.flag_of_node[id] != kAlways && drafts_[id].role != OpRole::kExit) flags.push_back(plan_->guards.flag_of_node[id]);
    }
    return flags;
  }

  std::vector<uint32_t> ReleasedFromElsewhere(ReplayRange nodes) const {
    absl::flat_hash_set<uint32_t> own;
    std::vector<uint32_t> released;
    for (int32_t n = nodes.begin; n < nodes.end; ++n) {
      const PlanNode& node = plan_->nodes[n];
      for (uint32_t slot = node.first_output; slot < node.first_output + node.num_outputs; ++slot) own.insert(slot);
      if (node.has_dereferences) {
        for (const Dereference& d : plan_->dereferences.at(n)) own.insert(d.tensor_slot);
      }
    }
    for (int32_t n = nodes.begin; n < nodes.end; ++n) {
      const PlanNode& node = plan_->nodes[n];
      for (uint32_t i = node.first_release; i < node.first_release + node.num_releases; ++i) {
        if (!own.contains(plan_->releases[i])) released.push_back(plan_->releases[i]);
      }
    }
    return released;
  }

  void AddReplayControl(NodeId id, PlanNode* node) {
    const GuardId flag = plan_->guards.flag_of_node[id];
    const bool has_flag = flag != kAlways;
    if (node->kind != NodeKind::kSwitch && node->kind != NodeKind::kMerge && !has_flag) return;
    ReplayControl control;
    control.flag = has_flag ? flag : -1;
    control.branch_flags = NewFlags(plan_->guards.branch_flags[id]);
    if (node->kind == NodeKind::kMerge) {
      std::vector<ReplayRange>& guards = plan_->replay.input_guards;
      control.input_guards.begin = static_cast<int32_t>(guards.size());
      for (Endpoint e : flow_.nodes[id].data) {
        const GuardId guard = plan_->guards.OfEdge(flow_, e);
        guards.push_back(guard == kNoGuard ? ReplayRange() : FlagsOf(guard));
      }
      control.input_guards.end = static_cast<int32_t>(guards.size());
    }
    node->aux = static_cast<int32_t>(plan_->replay_controls.size());
    plan_->replay_controls.push_back(std::move(control));
  }

  const PlanInputs& in_;
  const Graph& graph_;
  std::unique_ptr<Plan> plan_;
  std::vector<NodeId> send_of_pair_;
  std::vector<Draft> drafts_;        // by graph id
  std::vector<Endpoint> inputs_;     // of drafts
  KernelSignature signature_;        // see Sign
  using LikeNodes = std::tuple<const KernelDef*, const Device*, const KernelSignature*, const void*>;  // the last: AttrMap::identity
  absl::flat_hash_map<LikeNodes, Kernel*> kernel_of_like_nodes_;
  // Those on their way to a device's memory. Shared with the copies, which may end after a build that failed.
  std::vector<std::pair<NodeId, std::shared_ptr<absl::StatusOr<Tensor>>>> copied_constants_;
  FlowGraph flow_;                   // by graph id
  ReplayOrder replay_order_;         // of kReplay
  std::vector<NodeId> order_;
  std::vector<int32_t> position_;    // of a graph id in order_
  std::vector<uint32_t> first_slot_; // by graph id
  std::vector<uint32_t> slot_base_;  // by frame: what slots are counted from; 0 but for kFrames
  std::vector<int32_t> dereference_slots_;  // of kFrames, by frame: the next slot to read a reference into
};

}  // namespace

namespace {

// "outer > inner"; "" for the root.
std::string LoopName(const std::vector<StaticFrame>& frames, int32_t frame) {
  std::string name;
  for (; frame > kRootFrame; frame = frames[frame].parent) {
    name = name.empty() ? frames[frame].name : absl::StrCat(frames[frame].name, " > ", name);
  }
  return name;
}

bool IsControlFlow(OpRole role) {
  switch (role) {
    case OpRole::kSwitch:
    case OpRole::kMerge:
    case OpRole::kEnter:
    case OpRole::kExit:
    case OpRole::kNextIteration:
    case OpRole::kLoopCond:
    case OpRole::kControlTrigger:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::shared_ptr<const TraceTables> Plan::trace_tables(absl::Span<const Tensor> feeds) const {
  const bool is_open = feeds.size() == feed_shapes.size() &&
                       std::any_of(feed_shapes.begin(), feed_shapes.end(), [](const PartialShape& s) { return !s.IsFullyKnown(); });
  std::vector<Shape> given;
  if (is_open) {
    for (const Tensor& feed : feeds) given.push_back(feed.shape());
  }
  std::lock_guard<std::mutex> lock(trace_tables_mutex_);
  if (trace_tables_ == nullptr || given != trace_feed_shapes_) {
    trace_tables_ = is_open ? MakeTraceTables(ShapesFrom(feeds)) : MakeTraceTables(compiled->shapes);
    trace_feed_shapes_ = std::move(given);
  }
  return trace_tables_;
}

InferredShapes Plan::ShapesFrom(absl::Span<const Tensor> feeds) const {
  ShapeInferenceOptions options;
  const Graph& graph = compiled->graph;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.schema == nullptr || node.schema->role != OpRole::kArg) continue;
    const auto index = static_cast<size_t>(node.node_attrs().GetOr<int64_t>("index", 0));
    if (index < feeds.size()) options.overrides[Endpoint{id, 0}] = PartialShape::Known(feeds[index].shape());
  }
  return InferShapes(graph, options, nullptr);
}

std::shared_ptr<const TraceTables> Plan::MakeTraceTables(const InferredShapes& shapes) const {
  auto tables = std::make_shared<TraceTables>();
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Node& node = compiled->graph.node(graph_ids[n]);
    TraceNode out;
    out.name = std::string(node.name);
    out.op = std::string(node.op);
    out.device = node.device;
    out.originals = OriginalNames(node, *loaded);
    if (node.inserted_by != nullptr) out.inserted_by = node.inserted_by;
    out.loop = LoopName(compiled->control_flow.frames, compiled->control_flow.frame_of[graph_ids[n]]);
    out.closes_loop = node.schema->role == OpRole::kNextIteration;
    out.control_flow = IsControlFlow(node.schema->role);
    const NodeCost cost = CostOf(compiled->graph, shapes, graph_ids[n], *nodes[n].info);
    out.flops = cost.flops;
    out.bytes = cost.bytes_read + cost.bytes_written;
    if (node.schema->role == OpRole::kSend || node.schema->role == OpRole::kRecv) {
      out.transfer = node.node_attrs().GetOr<int32_t>("pair", -1);
    }
    tables->nodes.push_back(std::move(out));
  }
  for (const auto& device : devices) tables->devices.push_back(device->full_name());
  for (const Transfer& t : compiled->transfers) {
    tables->transfers.push_back({compiled->graph.EndpointName(t.source), t.source_device, t.destination_device, t.bytes, t.cause});
  }
  return tables;
}

absl::StatusOr<std::shared_ptr<Kernel>> StatefulKernels::GetOrCreate(const std::string& key, const KernelNode& info, const KernelDef& def) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr || entry->op != info.schema->name) {
    auto made = std::make_unique<Entry>();
    made->op = info.schema->name;
    made->name = std::string(info.name);
    made->attrs = *info.attrs;
    made->signature = *info.signature;
    made->info = info;
    made->info.name = made->name;
    made->info.attrs = &made->attrs;
    made->info.signature = &made->signature;
    THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, def.factory(KernelInit(made->info)));
    made->kernel = WithTextAccounting(std::move(kernel), made->info);
    entry = std::move(made);
  }
  return entry->kernel;
}

absl::StatusOr<std::unique_ptr<Plan>> BuildPlan(const PlanInputs& inputs) { return PlanBuilder(inputs).Build(); }

}  // namespace thalweg
