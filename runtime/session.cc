#include "thalweg/runtime/session.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/btree_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/loader.h"
#include "thalweg/graph/lowering/lower_functions.h"
#include "thalweg/graph/prune.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/runtime/callable.h"
#include "thalweg/runtime/function_plans.h"
#include "thalweg/runtime/kernel_services.h"
#include "thalweg/runtime/plan.h"
#include "thalweg/runtime/session_core.h"

namespace thalweg {
namespace {

// Signatures kept compiled per session; the least recently used one goes first (H22).
constexpr size_t kMaxCachedSignatures = 256;

// The memory limit of the control group this process runs in, or of the machine.
int64_t AvailableMemoryBytes() {
  struct sysinfo info;
  int64_t bytes = sysinfo(&info) == 0 ? static_cast<int64_t>(info.totalram) * info.mem_unit : int64_t{1} << 33;
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    int64_t limit;
    if (file >> limit && limit > 0) bytes = std::min(bytes, limit);
  }
  return bytes;
}

int64_t MemoryLimit(const SessionOptions& options) {
  return options.memory_limit_bytes > 0 ? options.memory_limit_bytes : AvailableMemoryBytes() / 5 * 4;
}

absl::StatusOr<int> ThreadCount(const SessionOptions& options) {
  if (options.threads < 0 || options.threads > SessionOptions::kMaxThreads) {
    return absl::InvalidArgumentError(absl::StrCat("threads is ", options.threads, "; it must be from 1 to ",
                                                   SessionOptions::kMaxThreads, ", or 0 for one per core"));
  }
  if (options.threads > 0) return options.threads;
  return static_cast<int>(std::clamp<unsigned>(std::thread::hardware_concurrency(), 1, SessionOptions::kMaxThreads));
}

// The shape that a node declares for an output: a placeholder's attribute, or unknown.
PartialShape DeclaredShape(const Graph& graph, Endpoint e) {
  const Node& node = graph.node(e.node);
  if (node.data_inputs().empty() && node.num_outputs() == 1) return node.node_attrs().GetOr<PartialShape>("shape", PartialShape());
  return PartialShape();
}

class SessionImpl final : public Session {
 public:
  SessionImpl(const SessionOptions& options, std::shared_ptr<SessionCore> core, PlacementOptions placement)
      : options_(options),
        core_(std::move(core)),
        catalog_(MakeKernelCatalog(BuiltinOps())),
        evaluator_(MakeConstantEvaluator(BuiltinOps())),
        placement_(std::move(placement)) {
    for (const auto& device : core_->devices()) {
      placement_devices_.push_back({device->name(), device->backend(), device->memory() == MemoryKind::kHost});
    }
  }
  ~SessionImpl() override { core_->Close(); }

  absl::Status ExtendFromFile(const std::string& path) override {
    return Extend([&](const LoadOptions& options) { return LoadGraphFile(path, options); });
  }
  absl::Status ExtendFromMemory(absl::string_view graph) override {
    return Extend([&](const LoadOptions& options) { return LoadGraphBytes(graph, nullptr, "the given graph", options); });
  }

  absl::StatusOr<std::vector<Tensor>> Run(const Feeds& feeds, const std::vector<std::string>& fetches,
                                          const std::vector<std::string>& targets, const RunOptions& options,
                                          Cancellation* cancellation) override {
    std::vector<std::string> names;
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : feeds) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<Callable> callable, MakeCallable(names, fetches, targets, {}));
    return callable->Run(tensors, options, cancellation);
  }

  absl::StatusOr<std::shared_ptr<Callable>> MakeCallable(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
                                                         const std::vector<std::string>& targets,
                                                         const std::vector<TensorConnection>& connections) override {
    if (core_->closed()) return absl::CancelledError("the session is closed");
    std::string key = absl::StrCat(absl::StrJoin(feeds, "\1"), "\2", absl::StrJoin(fetches, "\1"), "\2", absl::StrJoin(targets, "\1"));
    for (const TensorConnection& c : connections) absl::StrAppend(&key, "\2", c.from, "\1", c.to);
    if (std::shared_ptr<Callable> cached = FindCached(key)) return cached;
    THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<Callable> callable, Compile(feeds, fetches, targets, connections));
    return Remember(key, std::move(callable));
  }

  absl::StatusOr<TensorInfo> Describe(absl::string_view tensor) const override;
  absl::StatusOr<std::string> PlacementSummary(const std::vector<std::string>& fetches) override;

  std::string DescribeSteps() const override { return core_->DescribeSteps(); }

  int64_t peak_memory_bytes() const override { return core_->budget().peak(); }

  absl::Status Close() override {
    core_->Close();
    std::lock_guard<std::mutex> lock(mutex_);
    cache_.clear();
    cache_order_.clear();
    return absl::OkStatus();
  }

 private:
  struct Signature {
    std::vector<Endpoint> feeds;
    std::vector<Endpoint> fetches;
    std::vector<NodeId> targets;
    std::vector<Connection> connections;
  };

  std::shared_ptr<const Graph> graph() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return graph_;
  }

  // Builds the longer graph aside and swaps it in only when it is right (D3).
  template <typename Load>
  absl::Status Extend(Load load) {
    if (core_->closed()) return absl::CancelledError("the session is closed");
    std::lock_guard<std::mutex> extending(extend_mutex_);
    std::shared_ptr<const Graph> base = graph();
    LoadOptions options;
    options.schemas = &BuiltinOps().schemas;
    options.base = base.get();
    THALWEG_ASSIGN_OR_RETURN(LoadResult result, load(options));
    THALWEG_RETURN_IF_ERROR(result.status());
    auto extended = std::make_shared<const Graph>(std::move(result.graph));
    std::lock_guard<std::mutex> lock(mutex_);
    graph_ = std::move(extended);
    return absl::OkStatus();
  }

  std::shared_ptr<Callable> FindCached(const std::string& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = cache_.find(key);
    if (it == cache_.end()) return nullptr;
    cache_order_.splice(cache_order_.begin(), cache_order_, it->second.position);
    return it->second.callable;
  }

  // Of two threads that compiled the same signature, the first one's result is kept (D12).
  std::shared_ptr<Callable> Remember(const std::string& key, std::shared_ptr<Callable> callable) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = cache_.find(key);
    if (it != cache_.end()) return it->second.callable;
    cache_order_.push_front(key);
    cache_[key] = {callable, cache_order_.begin()};
    if (cache_.size() > kMaxCachedSignatures) {
      cache_.erase(cache_order_.back());
      cache_order_.pop_back();
    }
    return callable;
  }

  absl::StatusOr<Endpoint> ParseTensor(const Graph& graph, const std::string& text, const char* what) const;
  absl::StatusOr<Signature> Resolve(const Graph& graph, const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
                                    const std::vector<std::string>& targets) const;
  absl::StatusOr<CompiledGraph> CompileSignature(const Graph& graph, const Signature& signature);
  absl::StatusOr<std::shared_ptr<Callable>> Compile(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
                                                    const std::vector<std::string>& targets, const std::vector<TensorConnection>& connections);
  CompileRequest NewRequest();
  // Of the plans of a signature and of the functions that it calls.
  PlanInputs NewPlanInputs(CompiledGraph compiled, FunctionPlans& functions);
  absl::StatusOr<std::unique_ptr<Plan>> BuildFunction(const std::shared_ptr<const Graph>& graph, FunctionPlans& functions,
                                                      const std::shared_ptr<const FunctionBody>& body, Effects effects);
  void RememberStatefulDevices(const CompiledGraph& compiled);

  const SessionOptions options_;
  const std::shared_ptr<SessionCore> core_;
  const std::unique_ptr<KernelCatalog> catalog_;
  const std::unique_ptr<ConstantEvaluator> evaluator_;
  std::vector<PlacementDevice> placement_devices_;
  StatefulKernels stateful_kernels_;
  std::mutex extend_mutex_;            // held while a graph is extended; taken before mutex_

  struct Cached {
    std::shared_ptr<Callable> callable;
    std::list<std::string>::iterator position;
  };
  mutable std::mutex mutex_;
  std::shared_ptr<const Graph> graph_;                       // guarded by mutex_; null before the first graph
  PlacementOptions placement_;                               // guarded by mutex_ (stateful_assignments grow)
  absl::flat_hash_map<std::string, Cached> cache_;           // guarded by mutex_
  std::list<std::string> cache_order_;                       // guarded by mutex_; most recently used first
};

// A target may be written as one of its tensors: the node runs, whichever it is (D20).
absl::string_view WithoutPort(absl::string_view target) {
  const size_t colon = target.rfind(':');
  if (colon == absl::string_view::npos || colon + 1 == target.size()) return target;
  const absl::string_view port = target.substr(colon + 1);
  return std::all_of(port.begin(), port.end(), absl::ascii_isdigit) ? target.substr(0, colon) : target;
}

// What a feed of a node that is not there may have meant: the inputs of the graph.
std::string PlaceholdersText(const Graph& graph) {
  constexpr size_t kMost = 20;
  std::vector<std::string> names;
  size_t count = 0;
  for (const Node& node : graph.nodes()) {
    if (node.removed || !IsPlaceholder(node) || ++count > kMost) continue;
    names.push_back(absl::StrCat("'", node.name, "' (", DTypeName(node.output_types[0]), ")"));
  }
  if (names.empty()) return "it has no placeholders";
  return absl::StrCat("its placeholders: ", absl::StrJoin(names, ", "),
                      count > kMost ? absl::StrCat(" and ", count - kMost, " more") : "");
}

absl::StatusOr<Endpoint> SessionImpl::ParseTensor(const Graph& graph, const std::string& text, const char* what) const {
  absl::StatusOr<Endpoint> endpoint = graph.ParseEndpoint(text);
  if (!endpoint.ok()) return absl::Status(endpoint.status().code(), absl::StrCat(what, " '", text, "': ", endpoint.status().message()));
  const Node& node = graph.node(endpoint->node);
  if (endpoint->is_control() || node.num_outputs() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(what, " '", text, "': node '", node.name, "' (", node.op,
                                                   ") has no outputs; name it as a target instead"));
  }
  return endpoint;
}

absl::StatusOr<SessionImpl::Signature> SessionImpl::Resolve(const Graph& graph, const std::vector<std::string>& feeds,
                                                            const std::vector<std::string>& fetches,
                                                            const std::vector<std::string>& targets) const {
  if (fetches.empty() && targets.empty()) {
    return absl::InvalidArgumentError("nothing to do: name a tensor to fetch or a node to run");
  }
  Signature signature;
  for (const std::string& text : feeds) {
    absl::StatusOr<Endpoint> parsed = ParseTensor(graph, text, "feed");
    if (absl::IsNotFound(parsed.status()))
      return absl::NotFoundError(absl::StrCat(
          parsed.status().message(), absl::EndsWith(parsed.status().message(), "?") ? " " : "; ", PlaceholdersText(graph)));
    THALWEG_ASSIGN_OR_RETURN(const Endpoint e, std::move(parsed));
    if (std::find(signature.feeds.begin(), signature.feeds.end(), e) != signature.feeds.end()) {
      return absl::InvalidArgumentError(absl::StrCat("'", graph.EndpointName(e), "' is fed twice"));
    }
    signature.feeds.push_back(e);
  }
  for (const std::string& text : fetches) {
    THALWEG_ASSIGN_OR_RETURN(Endpoint e, ParseTensor(graph, text, "fetch"));
    signature.fetches.push_back(e);
  }
  for (const std::string& text : targets) {
    absl::StatusOr<Endpoint> e = graph.ParseEndpoint(WithoutPort(text));
    if (!e.ok()) return absl::Status(e.status().code(), absl::StrCat("target '", text, "': ", e.status().message()));
    signature.targets.push_back(e->node);
  }
  return signature;
}

absl::StatusOr<CompiledGraph> SessionImpl::CompileSignature(const Graph& graph, const Signature& signature) {
  CompileRequest request = NewRequest();
  request.feeds = signature.feeds;
  request.fetches = signature.fetches;
  request.targets = signature.targets;
  request.connections = signature.connections;
  return CompileGraph(graph, request);
}

CompileRequest SessionImpl::NewRequest() {
  CompileRequest request;
  request.devices = placement_devices_;
  request.kernels = catalog_.get();
  request.evaluator = evaluator_.get();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    request.placement = placement_;
  }
  request.optimize = options_.optimizes();
  request.parallel_iterations = options_.parallel_iterations;
  request.disabled_passes.insert(options_.disabled_passes.begin(), options_.disabled_passes.end());
  return request;
}

absl::StatusOr<std::unique_ptr<Plan>> SessionImpl::BuildFunction(const std::shared_ptr<const Graph>& graph, FunctionPlans& functions,
                                                                 const std::shared_ptr<const FunctionBody>& body, Effects effects) {
  THALWEG_ASSIGN_OR_RETURN(CompiledGraph compiled, CompileFunction(*body, effects, *graph, NewRequest()));
  RememberStatefulDevices(compiled);
  PlanInputs inputs = NewPlanInputs(std::move(compiled), functions);
  inputs.loaded = std::shared_ptr<const Graph>(body, &body->graph);
  inputs.threads = 1;
  for (const NodeId arg : body->args) {
    inputs.feed_names.emplace_back(body->graph.node(arg).name);
    inputs.feed_types.push_back(RemoveRef(body->graph.node(arg).output_types[0]));
    inputs.feed_shapes.emplace_back();
  }
  for (const NodeId result : body->results) inputs.fetch_names.emplace_back(body->graph.node(result).name);
  return BuildPlan(inputs);
}

PlanInputs SessionImpl::NewPlanInputs(CompiledGraph compiled, FunctionPlans& functions) {
  PlanInputs inputs;
  compiled.placement = Placement();  // a plan reads devices from the nodes
  inputs.compiled = std::make_shared<const CompiledGraph>(std::move(compiled));
  inputs.devices = core_->devices();
  inputs.kernels = &BuiltinOps().kernels;
  inputs.stateful = &stateful_kernels_;
  inputs.functions = &functions;
  inputs.check_numerics = options_.check_numerics;
  inputs.forward_inputs = !absl::c_linear_search(options_.disabled_passes, SessionOptions::kForwardInputs);
  inputs.pack_constants = !absl::c_linear_search(options_.disabled_passes, SessionOptions::kPackConstants);
  return inputs;
}

absl::StatusOr<std::shared_ptr<Callable>> SessionImpl::Compile(const std::vector<std::string>& feeds,
                                                               const std::vector<std::string>& fetches,
                                                               const std::vector<std::string>& targets,
                                                               const std::vector<TensorConnection>& connections) {
  const auto begin = std::chrono::steady_clock::now();
  std::shared_ptr<const Graph> graph = this->graph();
  if (graph == nullptr) return absl::InvalidArgumentError("the session has no graph yet: load one or Extend first");
  THALWEG_ASSIGN_OR_RETURN(Signature signature, Resolve(*graph, feeds, fetches, targets));
  for (const TensorConnection& c : connections) {
    Connection& connection = signature.connections.emplace_back();
    THALWEG_ASSIGN_OR_RETURN(connection.from, ParseTensor(*graph, c.from, "connected tensor"));
    THALWEG_ASSIGN_OR_RETURN(connection.to, ParseTensor(*graph, c.to, "connected tensor"));
  }
  THALWEG_ASSIGN_OR_RETURN(CompiledGraph compiled, CompileSignature(*graph, signature));
  RememberStatefulDevices(compiled);
  const auto placed = std::chrono::steady_clock::now();

  auto functions = std::make_shared<FunctionPlans>(graph);
  PlanInputs inputs = NewPlanInputs(std::move(compiled), *functions);
  inputs.loaded = graph;
  inputs.threads = core_->pool().threads();
  inputs.general_frames = options_.general_frames;
  for (Endpoint e : signature.feeds) {
    inputs.feed_names.push_back(graph->EndpointName(e));
    inputs.feed_types.push_back(RemoveRef(graph->node(e.node).output_types[e.port]));
    inputs.feed_shapes.push_back(DeclaredShape(*graph, e));
  }
  for (Endpoint e : signature.fetches) inputs.fetch_names.push_back(graph->EndpointName(e));
  THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan, BuildPlan(inputs));
  functions->BuildAll([&](const std::shared_ptr<const FunctionBody>& body, Effects effects) {
    return BuildFunction(graph, *functions, body, effects);
  });
  plan->functions = std::move(functions);
  const auto done = std::chrono::steady_clock::now();

  Callable::Info info;
  info.place_nanos = std::chrono::nanoseconds(placed - begin).count();
  info.compile_nanos = std::chrono::nanoseconds(done - placed).count();
  info.nodes = static_cast<int64_t>(plan->nodes.size());
  info.transfers = static_cast<int64_t>(plan->compiled->transfers.size());
  return std::shared_ptr<Callable>(std::make_shared<CompiledCallable>(core_, std::move(plan), info));
}

void SessionImpl::RememberStatefulDevices(const CompiledGraph& compiled) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Node& node : compiled.graph.nodes()) {
    // The nodes of functions have the same names in every step that makes the call.
    const bool has_lasting_name = node.inserted_by == nullptr || absl::string_view(node.inserted_by) == kLowerFunctions;
    if (node.stateful() && node.origin != kNoNode && has_lasting_name) {
      placement_.stateful_assignments.emplace(std::string(node.name), node.device);
    }
  }
}

absl::StatusOr<Session::TensorInfo> SessionImpl::Describe(absl::string_view tensor) const {
  std::shared_ptr<const Graph> graph = this->graph();
  if (graph == nullptr) return absl::InvalidArgumentError("the session has no graph yet");
  THALWEG_ASSIGN_OR_RETURN(Endpoint e, ParseTensor(*graph, std::string(tensor), "tensor"));
  return TensorInfo{RemoveRef(graph->node(e.node).output_types[e.port]), DeclaredShape(*graph, e)};
}

absl::StatusOr<std::string> SessionImpl::PlacementSummary(const std::vector<std::string>& fetches) {
  std::shared_ptr<const Graph> graph = this->graph();
  if (graph == nullptr) return absl::InvalidArgumentError("the session has no graph yet");
  THALWEG_ASSIGN_OR_RETURN(Signature signature, Resolve(*graph, {}, fetches, {}));
  THALWEG_ASSIGN_OR_RETURN(CompiledGraph compiled, CompileSignature(*graph, signature));
  absl::btree_map<std::string, int> counts;
  for (NodeId id = 0; id < compiled.graph.num_nodes(); ++id) {
    const Node& node = compiled.graph.node(id);
    const DecisionRecord& record = compiled.placement.records[id];
    ++counts[absl::StrCat(core_->devices()[node.device]->name().ToShortString(), "  ", node.op, "  ", record.rule)];
  }
  std::string out;
  for (const auto& [line, count] : counts) absl::StrAppend(&out, count, "  ", line, "\n");
  return out;
}

absl::StatusOr<PlacementOptions> MakePlacementOptions(const SessionOptions& options) {
  PlacementOptions placement;
  placement.policy = options.policy;
  placement.allow_soft_placement = options.soft_placement;
  for (const auto& [pattern, device] : options.pins) placement.pins.push_back({pattern, device});
  if (!options.placement_file.empty()) {
    THALWEG_ASSIGN_OR_RETURN(placement.fixed, ReadPlacementFile(options.placement_file));
  }
  return placement;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(const SessionOptions& options) {
  THALWEG_ASSIGN_OR_RETURN(std::vector<DeviceRequest> requests, ParseDeviceList(options.devices));
  THALWEG_ASSIGN_OR_RETURN(const int threads, ThreadCount(options));
  auto budget = std::make_shared<MemoryBudget>(MemoryLimit(options));
  THALWEG_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Device>> devices, MakeDevices(requests, budget));
  if (devices.empty() || devices[0]->memory() != MemoryKind::kHost) {
    return absl::InvalidArgumentError("the first device of a session must be a CPU: it takes feeds and gives fetches");
  }
  THALWEG_ASSIGN_OR_RETURN(PlacementOptions placement, MakePlacementOptions(options));
  auto core = std::make_shared<SessionCore>(std::move(budget), std::move(devices), threads);
  return std::unique_ptr<Session>(std::make_unique<SessionImpl>(options, std::move(core), std::move(placement)));
}

absl::StatusOr<std::unique_ptr<Session>> Session::FromFile(const std::string& path, const SessionOptions& options) {
  THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Create(options));
  THALWEG_RETURN_IF_ERROR(session->ExtendFromFile(path));
  return session;
}

absl::StatusOr<std::unique_ptr<Session>> Session::FromMemory(absl::string_view graph, const SessionOptions& options) {
  THALWEG_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Create(options));
  THALWEG_RETURN_IF_ERROR(session->ExtendFromMemory(graph));
  return session;
}

}  // namespace thalweg
