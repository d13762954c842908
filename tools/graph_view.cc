#include "thalweg/tools/graph_view.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/report.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

int64_t SizeOfFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

bool OneOf(absl::string_view op, absl::Span<const absl::string_view> ops) { return std::find(ops.begin(), ops.end(), op) != ops.end(); }

// Which nodes depend on an input of the graph, through data or control.
std::vector<bool> ReachableFromInputs(const Graph& graph, const Consumers& consumers) {
  std::vector<bool> reached(graph.num_nodes(), false);
  std::vector<NodeId> work;
  const auto reach = [&](NodeId id) {
    if (reached[id]) return;
    reached[id] = true;
    work.push_back(id);
  };
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (InputKind(graph.node(id)) != nullptr) reach(id);
  }
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (const Consumers::Use& use : consumers.of(id)) reach(use.node);
  }
  return reached;
}

bool IsInGradientScope(absl::string_view name) {
  return absl::StartsWith(name, "gradients/") || absl::StrContains(name, "/gradients/");
}

OutputCandidate Judge(const Graph& graph, NodeId id, bool reached, bool any_input) {
  const Node& node = graph.node(id);
  OutputCandidate candidate{id, false, "no consumers"};
  if (IsHousekeeping(node)) candidate.reason += ", saves, restores or initialises";
  else if (IsInGradientScope(node.name)) candidate.reason += ", part of a gradient";
  else if (any_input && !reached) candidate.reason += ", depends on no input";
  else if (node.is("Const")) candidate.reason += ", a constant";
  else candidate.likely = true;
  if (candidate.likely && any_input) candidate.reason += ", depends on an input";
  return candidate;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GraphView>> OpenGraph(const std::string& path, const FixedShapes& shapes) {
  auto view = std::make_unique<GraphView>();
  view->path = path;
  view->file_bytes = SizeOfFile(path);
  LoadOptions options;
  options.schemas = &BuiltinOps().schemas;
  THALWEG_ASSIGN_OR_RETURN(view->loaded, LoadGraphFile(path, options));
  if (view->loaded.has_errors()) return view;
  ShapeInferenceOptions inference;
  for (const auto& [name, shape] : shapes) {
    THALWEG_ASSIGN_OR_RETURN(const Endpoint endpoint, view->graph().ParseEndpoint(name));
    inference.overrides[endpoint] = shape;
  }
  view->shapes = InferShapes(view->graph(), inference, &view->loaded.findings);
  view->consumers = view->graph().BuildConsumers();
  return view;
}

absl::StatusOr<FixedShapes> ParseFixedShapes(const std::vector<std::string>& flags) {
  FixedShapes shapes;
  for (const std::string& text : flags) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(absl::StrCat("--shape: '", text, "' is not NAME=SHAPE, as in image=8x224x224x3"));
    }
    absl::StatusOr<PartialShape> shape = ParsePartialShape(absl::string_view(text).substr(equals + 1));
    if (!shape.ok()) return absl::InvalidArgumentError(absl::StrCat("--shape: ", shape.status().message()));
    shapes.emplace_back(text.substr(0, equals), *std::move(shape));
  }
  return shapes;
}

bool IsPlaceholder(const Node& node) { return node.is("Placeholder") || node.is("PlaceholderV2"); }

const char* InputKind(const Node& node) {
  const absl::string_view op = node.op;
  if (absl::StartsWith(op, "Placeholder")) return "placeholder";
  if (absl::StrContains(op, "Dequeue") || OneOf(op, {"Unstage", "MapUnstage"})) return "queue";
  if (absl::StrContains(op, "Reader") && absl::StrContains(op, "Read")) return "reader";
  if (OneOf(op, {"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"})) return "dataset";
  if (OneOf(op, {"ReadFile", "DecodeCSV"})) return "file";
  static constexpr std::array<absl::string_view, 12> kRandom = {
      "RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal", "Multinomial", "RandomShuffle", "RandomGamma",
      "RandomPoisson", "RandomPoissonV2", "ParameterizedTruncatedNormal", "RandomCrop", "StatelessRandomUniform"};
  return OneOf(op, kRandom) ? "random" : nullptr;
}

bool IsHousekeeping(const Node& node) {
  static constexpr std::array<absl::string_view, 16> kOps = {
      "SaveV2", "SaveSlices", "Save", "RestoreV2", "RestoreSlice", "Restore", "ShardedFilename", "MergeV2Checkpoints",
      "MergeSummary", "ScalarSummary", "HistogramSummary", "ImageSummary", "VarIsInitializedOp", "IsVariableInitialized",
      "ReportUninitializedVariables", "NoOp"};
  if (OneOf(node.op, kOps) || absl::StartsWith(node.op, "Assign")) return true;
  return absl::StartsWith(node.name, "save/") || absl::StartsWith(node.name, "report_uninitialized_variables");
}

absl::flat_hash_set<NodeId> Ancestors(const Graph& graph, const std::vector<NodeId>& roots, const absl::flat_hash_set<Endpoint>& stops) {
  absl::flat_hash_set<NodeId> seen(roots.begin(), roots.end());
  std::vector<NodeId> work(seen.begin(), seen.end());
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (const Endpoint input : graph.node(id).inputs) {
      if (!stops.contains(input) && seen.insert(input.node).second) work.push_back(input.node);
    }
  }
  return seen;
}

absl::StatusOr<std::vector<NodeId>> UnfedPlaceholders(const Graph& graph, const std::vector<std::string>& feeds,
                                                      const std::vector<std::string>& fetches, const std::vector<std::string>& targets) {
  absl::flat_hash_set<Endpoint> fed;
  for (const std::string& feed : feeds) {
    THALWEG_ASSIGN_OR_RETURN(const Endpoint endpoint, graph.ParseEndpoint(feed));
    fed.insert(endpoint);
  }
  std::vector<NodeId> roots;
  for (const auto* names : {&fetches, &targets}) {
    for (const std::string& name : *names) {
      THALWEG_ASSIGN_OR_RETURN(const Endpoint endpoint, graph.ParseEndpoint(name));
      if (!fed.contains(endpoint)) roots.push_back(endpoint.node);
    }
  }
  std::vector<NodeId> unfed;
  for (const NodeId id : Ancestors(graph, roots, fed)) {
    if (IsPlaceholder(graph.node(id)) && !fed.contains({id, 0})) unfed.push_back(id);
  }
  std::sort(unfed.begin(), unfed.end());
  return unfed;
}

std::vector<OutputCandidate> RankOutputs(const GraphView& view) {
  const Graph& graph = view.graph();
  const std::vector<bool> reached = ReachableFromInputs(graph, *view.consumers);
  const bool any_input = std::find(reached.begin(), reached.end(), true) != reached.end();
  std::vector<OutputCandidate> candidates;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    if (node.num_outputs() == 0 || InputKind(node) != nullptr) continue;
    const auto uses = view.consumers->of(id);
    const bool read = std::any_of(uses.begin(), uses.end(), [](const Consumers::Use& u) { return u.port != kControlPort; });
    if (!read) candidates.push_back(Judge(graph, id, reached[id], any_input));
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return a.likely > b.likely; });
  return candidates;
}

}  // namespace thalweg::tools
