#include "thalweg/tools/graph_view.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

int64_t SizeOfFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

// True for what must be fed before anything that reads it can run.
bool IsPlaceholder(const Node& node) { return node.is("Placeholder") || node.is("PlaceholderV2"); }

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
  view->summary = SummarizeGraph(view->graph(), view->shapes);
  return view;
}

absl::StatusOr<FixedShapes> ParseFixedShapes(const std::vector<std::string>& texts) {
  FixedShapes shapes;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not NAME=SHAPE, as in image=8x224x224x3"));
    }
    THALWEG_ASSIGN_OR_RETURN(PartialShape shape, ParsePartialShape(absl::string_view(text).substr(equals + 1)));
    shapes.emplace_back(text.substr(0, equals), std::move(shape));
  }
  return shapes;
}

absl::StatusOr<FixedShapes> ReadFixedShapes(const Arguments& arguments) {
  absl::StatusOr<FixedShapes> shapes = ParseFixedShapes(arguments.All("shape"));
  if (!shapes.ok()) return ForFlag("shape", shapes.status());
  return shapes;
}

absl::flat_hash_set<NodeId> Ancestors(const Graph& graph, const std::vector<NodeId>& roots,
                                      const absl::flat_hash_set<Endpoint>& stops) {
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
                                                      const std::vector<std::string>& fetches,
                                                      const std::vector<std::string>& targets) {
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

std::vector<std::string> LikelyFetches(const GraphSummary& summary, size_t limit) {
  std::vector<std::string> fetches;
  for (const TensorSummary& output : summary.outputs) {
    if (output.likely && fetches.size() < limit) fetches.push_back(output.name);
  }
  return fetches;
}

}  // namespace thalweg::tools
