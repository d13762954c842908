#include "thalweg/graph/compile_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/lowering/lower_functions.h"
#include "thalweg/graph/passes/pass_list.h"
#include "thalweg/graph/passes/pass_runner.h"
#include "thalweg/graph/passes/rewrite.h"
#include "thalweg/graph/prune.h"

namespace thalweg {
namespace {

// Steps that see different parts of the graph must agree on where state lives (C21).
absl::StatusOr<PlacementOptions> WithStatePlacement(const Graph& loaded, const CompileRequest& request) {
  PlacementOptions options = request.placement;
  if (request.devices.size() < 2) return options;
  THALWEG_ASSIGN_OR_RETURN(auto state, PlaceState(loaded, request.devices, *request.kernels, options));
  for (auto& [name, device] : state) options.stateful_assignments.try_emplace(name, device);
  return options;
}

// The same facts about renumbered nodes. Facts are shared by many records and mostly name no nodes.
class FactRenumberer {
 public:
  explicit FactRenumberer(const std::vector<NodeId>& new_ids) : new_ids_(new_ids) {}

  std::shared_ptr<const CandidateFacts> Renumber(const std::shared_ptr<const CandidateFacts>& facts) {
    if (facts == nullptr) return facts;
    auto [it, is_new] = renumbered_.try_emplace(facts.get(), facts);
    if (!is_new) return it->second;
    const bool names_nodes =
        std::any_of(facts->begin(), facts->end(), [](const CandidateFact& f) { return f.source != kNoNode; });
    if (!names_nodes) return facts;
    auto copy = std::make_shared<CandidateFacts>(*facts);
    for (CandidateFact& fact : *copy) {
      if (fact.source != kNoNode) fact.source = new_ids_[fact.source];
    }
    return it->second = std::move(copy);
  }

 private:
  const std::vector<NodeId>& new_ids_;
  absl::flat_hash_map<const CandidateFacts*, std::shared_ptr<const CandidateFacts>> renumbered_;
};

// Drops removed nodes and renumbers everything that names nodes.
absl::Status Compact(Graph graph, CompiledGraph* out) {
  const int num_nodes = graph.num_nodes();
  std::vector<NodeId> new_ids;
  out->graph = std::move(graph);
  THALWEG_RETURN_IF_ERROR(out->graph.Compact(&new_ids));
  const auto renumber = [&new_ids](NodeId* id) { *id = *id == kNoNode ? kNoNode : new_ids[*id]; };
  FactRenumberer facts(new_ids);
  std::vector<DecisionRecord> records(out->graph.num_nodes());
  for (NodeId old = 0; old < num_nodes; ++old) {
    if (new_ids[old] == kNoNode) continue;
    DecisionRecord& record = records[new_ids[old]];
    record = std::move(out->placement.records[old]);
    record.candidates = facts.Renumber(record.candidates);
    renumber(&record.follows);
    renumber(&record.group);
  }
  out->placement.records = std::move(records);
  for (Transfer& transfer : out->transfers) {
    for (NodeId* id : {&transfer.source.node, &transfer.send, &transfer.recv}) renumber(id);
    for (NodeId& consumer : transfer.consumers) renumber(&consumer);
  }
  return absl::OkStatus();
}

void FillTransferBytes(CompiledGraph* compiled) {
  for (Transfer& transfer : compiled->transfers) {
    const Endpoint value = compiled->graph.node(transfer.send).inputs[0];
    const int64_t elements = compiled->shapes.output(value).NumElementsOrUnknown();
    const auto element_size = static_cast<int64_t>(DTypeSize(transfer.dtype));
    int64_t bytes = 0;
    if (elements >= 0 && element_size > 0 && CheckedMul(elements, element_size, &bytes)) transfer.bytes = bytes;
  }
}

void OverrideParallelIterations(int iterations, ControlFlow* flow) {
  if (iterations < 1) return;
  for (StaticFrame& frame : flow->frames) frame.parallel_iterations = iterations;
}

bool HasConditionals(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) { return !node.removed && HasRole(node, OpRole::kSwitch); });
}

// A node that is refused although nothing is known of its inputs can only fail when it runs. Where every node runs the step fails at
// once; where some may not, only if it comes to the node. Where inputs contradict a node its kernel will say so.
absl::Status InferShapesOfStep(CompiledGraph* out) {
  std::vector<Finding> findings;
  out->shapes = InferShapes(out->graph, {}, &findings);
  const bool some_may_not_run = HasConditionals(out->graph);
  for (const Finding& finding : findings) {
    if (finding.severity != Finding::Severity::kWarning) continue;
    const Node& node = out->graph.node(finding.node_id);
    if (!some_may_not_run || node.schema->role != OpRole::kNormal) return absl::Status(finding.code, finding.message);
    absl::string_view fault = finding.message;
    // The executor says of which node it is, and with which inputs.
    absl::ConsumePrefix(&fault, absl::StrCat(NodeLabel(node), ": "));
    fault = fault.substr(0, fault.find("; input shapes: "));
    out->faults[finding.node_id] = absl::Status(finding.code, fault);
  }
  return absl::OkStatus();
}

LoweringOptions LoweringOptionsOf(const CompileRequest& request, const FunctionBody* within) {
  LoweringOptions options;
  options.within = within;
  for (const PlacementDevice& device : request.devices) options.devices.push_back(device.name);
  return options;
}

// What a call of the function executes, as a step of its own.
PrunedGraph StepOfFunction(const FunctionBody& body, Effects effects) {
  PrunedGraph step;
  step.graph = body.graph;
  step.preserve.insert(body.results.begin(), body.results.end());
  step.preserve.insert(body.effects(effects).begin(), body.effects(effects).end());
  RemoveUnreachable(step.graph, step.preserve);
  return step;
}

// The stages, in order, for the step that `prepare` makes.
absl::StatusOr<CompiledGraph> Compile(PrepareStep prepare, const Graph& loaded, const CompileRequest& request) {
  CompiledGraph out;
  // Rewrite it.
  THALWEG_ASSIGN_OR_RETURN(PrunedGraph step, PrepareAndOptimize(prepare, request, AllPasses(), &out.passes));
  Graph& graph = step.graph;
  THALWEG_RETURN_IF_ERROR(AnalyzeControlFlow(graph).status());
  // Decide on devices.
  THALWEG_ASSIGN_OR_RETURN(PlacementOptions placement, WithStatePlacement(loaded, request));
  THALWEG_ASSIGN_OR_RETURN(out.placement, PlaceGraph(graph, request.devices, *request.kernels, placement));
  // Cut the edges between devices.
  THALWEG_ASSIGN_OR_RETURN(PartitionResult cut,
                           PartitionGraph(graph, out.placement, request.devices, *request.kernels));
  out.transfers = std::move(cut.transfers);
  // Number what is left in topological order.
  THALWEG_RETURN_IF_ERROR(Compact(std::move(graph), &out));
  THALWEG_RETURN_IF_ERROR(InferShapesOfStep(&out));
  FillTransferBytes(&out);
  THALWEG_ASSIGN_OR_RETURN(out.control_flow, AnalyzeControlFlow(out.graph));
  OverrideParallelIterations(request.parallel_iterations, &out.control_flow);
  return out;
}

}  // namespace

absl::StatusOr<CompiledGraph> CompileGraph(const Graph& loaded, const CompileRequest& request) {
  const auto prepare = [&]() -> absl::StatusOr<PrunedGraph> {
    // Keep what the step needs, with its feeds and fetches as nodes.
    THALWEG_ASSIGN_OR_RETURN(PrunedGraph step, PruneGraph(loaded, {request.feeds, request.fetches, request.targets, request.connections}));
    // Put nodes in the place of calls and functional control flow.
    THALWEG_RETURN_IF_ERROR(LowerFunctions(step, LoweringOptionsOf(request, nullptr)));
    return step;
  };
  return Compile(prepare, loaded, request);
}

absl::StatusOr<CompiledGraph> CompileFunction(const FunctionBody& body, Effects effects, const Graph& loaded, const CompileRequest& request) {
  const auto prepare = [&]() -> absl::StatusOr<PrunedGraph> {
    PrunedGraph step = StepOfFunction(body, effects);
    THALWEG_RETURN_IF_ERROR(LowerFunctions(step, LoweringOptionsOf(request, &body)));
    return step;
  };
  return Compile(prepare, loaded, request);
}

}  // namespace thalweg
