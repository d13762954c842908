// thalweg inspect GRAPH: what is in a graph, and what is wrong with it.
#include <re2/re2.h>

#include <algorithm>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/graph/functions.h"
#include "thalweg/graph/summary.h"
#include "thalweg/tools/advice.h"
#include "thalweg/tools/findings_report.h"
#include "thalweg/tools/graph_facts.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/open_session.h"
#include "thalweg/tools/producer.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

constexpr size_t kListed = 5;       // inputs, outputs, loops without --all
constexpr int kMaxNodesShown = 50;  // of --node without --all
constexpr int kAttrCharacters = 200;

const CommandSpec& Spec() {
  static const auto* const spec = new CommandSpec{
      "inspect",
      "Shows what is in a graph: inputs, outputs, sizes, ops, loops, and everything that is wrong with it.",
      "GRAPH",
      1,
      1,
      {{FlagKind::kSwitch, "check", "", "", "list everything wrong or remarkable; exit code 3 if there are errors"},
       {FlagKind::kSwitch, "ops", "", "", "the ops with their numbers and kernels"},
       {FlagKind::kValue, "node", "", "RE",
        "the nodes whose whole name matches: op, attributes, inputs, outputs, readers"},
       {FlagKind::kPair, "path", "", "A B", "a shortest path of edges from node A to node B"},
       {FlagKind::kRepeated, "shape", "", "NAME=8x224x224x3", "fix the shape of a tensor and infer the others from it"},
       {FlagKind::kSwitch, "all", "", "", "full lists"},
       {FlagKind::kSwitch, "json", "", "", "for programs"}},
      {"thalweg inspect model.pb", "thalweg inspect model.pb --check",
       "thalweg inspect model.pb --node 'conv1/.*' --shape image=1x224x224x3"}};
  return *spec;
}

std::string TensorText(const GraphView& view, NodeId id, int port) {
  return absl::StrCat(DTypeName(view.graph().node(id).output_types[port]), " ",
                      view.shapes.output(id, port).ToString());
}

// ------------------------------------------------------------------------------------------------- the summary

std::string FirstLine(const GraphView& view) {
  const GraphSummary& summary = *view.summary;
  const int producer = view.graph().versions.producer;
  return absl::StrCat(
      view.path, "  GraphDef  ", FormatBytes(static_cast<double>(view.file_bytes)), "  ", ProducerText(producer),
      producer > 0 ? ", " : "", ReleaseOfProducer(producer), "  ", Plural(summary.nodes, "node"), ", ",
      Plural(summary.data_edges + summary.control_edges, "edge"),
      summary.parameters > 0 ? absl::StrCat(", ", FormatShort(static_cast<double>(summary.parameters)), " params") : "",
      "\n");
}

std::string TensorText(const TensorSummary& tensor) {
  return tensor.endpoint.is_control() ? "" : absl::StrCat(DTypeName(tensor.dtype), " ", tensor.shape.ToString());
}

// The first tensors of a list, likely ones only unless there are none; all of them with `all`.
void AddTensors(const char* title, const std::vector<TensorSummary>& tensors, bool all, Table* table) {
  size_t shown = 0, shown_likely = 0, likely = 0;
  for (const TensorSummary& tensor : tensors) {
    likely += tensor.likely;
    if (!all && (shown >= kListed || (!tensor.likely && shown > 0))) continue;
    shown_likely += tensor.likely;
    table->AddRow({shown++ == 0 ? title : "", tensor.name, TensorText(tensor), tensor.kind,
                   absl::StrCat(tensor.reason, tensor.likely ? "  (likely)" : "")});
  }
  if (shown < tensors.size()) {
    const size_t unlikely = tensors.size() - likely - (shown - shown_likely);
    table->AddRow({"", absl::StrCat(likely - shown_likely, " more likely, ", unlikely, " unlikely (--all)")});
  }
  if (tensors.empty()) table->AddRow({title, "none"});
}

std::string LoopsText(const GraphFacts& facts, bool all) {
  int depth = 0;
  std::vector<std::string> names;
  for (const FrameFacts& frame : facts.frames) {
    depth = std::max(depth, frame.depth);
    if (all || names.size() < kListed)
      names.push_back(absl::StrCat(frame.name, " (", Plural(frame.nodes, "node"), ")"));
  }
  return absl::StrCat(Plural(static_cast<int64_t>(facts.frames.size()), "frame"), ": ", absl::StrJoin(names, ", "),
                      names.size() < facts.frames.size() ? " ..." : "",
                      depth > 1 ? absl::StrCat("  nested ", depth, " deep") : "");
}

std::string DevicesText(const GraphFacts& facts, int64_t nodes) {
  std::string text = "kernels:";
  for (const std::string& backend : Backends()) {
    absl::StrAppend(&text, " ", backend, " ", FormatCount(facts.runnable(backend)), "/", FormatCount(nodes), " ");
  }
  std::vector<std::string> missing;
  for (const OpCoverage& row : facts.coverage) {
    if (!row.complete() && missing.size() < 3) missing.push_back(absl::StrCat(row.op, " x", row.nodes));
  }
  return absl::StrCat(text, missing.empty() ? "" : absl::StrCat(" (not on cpu: ", absl::StrJoin(missing, ", "), ")"));
}

std::string ProblemsText(const GraphView& view) {
  int64_t errors = 0, warnings = 0;
  for (const Finding& finding : view.loaded.findings) {
    errors += finding.severity == Finding::Severity::kError;
    warnings += finding.severity == Finding::Severity::kWarning;
  }
  errors += static_cast<int64_t>(FrameFaults(view.graph()).size());
  if (errors + warnings == 0) return "";
  return absl::StrCat(Plural(errors, "error"), ", ", Plural(warnings, "warning"), ": thalweg inspect ",
                      ShellQuote(view.path), " --check");
}

std::string FunctionsText(const GraphView& view, bool all) {
  std::vector<absl::string_view> names = view.graph().functions->Names();
  const size_t count = names.size();
  if (!all) names.resize(std::min(kListed, count));
  return absl::StrCat(count, ": ", absl::StrJoin(names, ", "), names.size() < count ? " ..." : "");
}

void PrintSummary(const GraphView& view, bool all, Console& console) {
  const GraphFacts facts = GatherFacts(view);
  console.Print(FirstLine(view));
  Table tensors(std::vector<Table::Align>(5, Table::Align::kLeft));
  AddTensors("inputs", view.summary->inputs, all, &tensors);
  AddTensors("outputs", view.summary->outputs, all, &tensors);
  console.Print(tensors.ToString());
  Table rest({Table::Align::kLeft, Table::Align::kLeft});
  if (!facts.frames.empty()) rest.AddRow({"loops", LoopsText(facts, all)});
  if (view.summary->functions > 0) rest.AddRow({"functions", FunctionsText(view, all)});
  rest.AddRow({"devices", DevicesText(facts, view.summary->nodes)});
  if (const std::string problems = ProblemsText(view); !problems.empty()) rest.AddRow({"problems", problems});
  if (const std::string example = ExampleRun(view); !example.empty()) rest.AddRow({"try", example});
  console.Print(rest.ToString());
}

// ------------------------------------------------------------------------------------------------- --ops

void PrintOps(const GraphView& view, Console& console) {
  Table table(
      {Table::Align::kLeft, Table::Align::kRight, Table::Align::kRight, Table::Align::kRight, Table::Align::kLeft});
  table.AddRow({"op", "nodes", "cpu", "sim", "first node"});
  absl::flat_hash_map<absl::string_view, absl::string_view> first;
  for (const Node& node : view.graph().nodes()) first.try_emplace(node.op, node.name);
  for (const OpCoverage& row : CoverageOfGraph(view.graph())) {
    const auto count = [&](const char* backend) {
      return row.is_function ? std::string("-") : FormatCount(row.runnable.at(backend));
    };
    table.AddRow({row.op, FormatCount(row.nodes), count("cpu"), count("sim"), std::string(first[row.op])});
  }
  console.Print(table.ToString());
}

// ------------------------------------------------------------------------------------------------- --node

std::string EdgeText(const GraphView& view, Endpoint input) {
  if (input.is_control()) return absl::StrCat("^", view.graph().node(input.node).name);
  return absl::StrCat(view.graph().EndpointName(input), "  ", TensorText(view, input.node, input.port));
}

void PrintNode(const GraphView& view, NodeId id, Console& console) {
  const Node& node = view.graph().node(id);
  console.Print(absl::StrCat(console.Paint(Colour::kBold, node.name), "  ", node.op,
                             node.requested_device.empty() ? "" : absl::StrCat("  device ", node.requested_device),
                             "\n"));
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  for (const auto& [name, value] : node.attrs)
    table.AddRow({absl::StrCat("attr ", name), AttrToString(value, kAttrCharacters)});
  for (const Endpoint input : node.inputs) table.AddRow({"input", EdgeText(view, input)});
  for (int port = 0; port < node.num_outputs(); ++port)
    table.AddRow({absl::StrCat("output ", port), TensorText(view, id, port)});
  size_t shown = 0;
  const auto uses = view.consumers->of(id);
  for (const Consumers::Use& use : uses) {
    if (shown++ == kListed) break;
    table.AddRow({"read by",
                  absl::StrCat(view.graph().node(use.node).name,
                               use.port == kControlPort ? "  (control)" : absl::StrCat("  (output ", use.port, ")"))});
  }
  if (uses.size() > kListed) table.AddRow({"", absl::StrCat(uses.size() - kListed, " more readers")});
  console.Print(table.ToString("  "));
}

// Fills `matched` with the nodes whose whole name matches; fails if there are none.
int MatchNodes(const GraphView& view, const std::string& pattern, Console& console, std::vector<NodeId>* matched) {
  RE2::Options quiet;
  quiet.set_log_errors(false);
  const RE2 re(pattern, quiet);
  if (!re.ok()) {
    return console.Fail(
        {absl::InvalidArgumentError(absl::StrCat("--node: '", pattern, "' is no regular expression: ", re.error())),
         kExitUsage, "thalweg help names"});
  }
  for (NodeId id = 0; id < view.graph().num_nodes(); ++id) {
    const absl::string_view name = view.graph().node(id).name;
    if (RE2::FullMatch(re2::StringPiece(name.data(), name.size()), re)) matched->push_back(id);
  }
  if (!matched->empty()) return kExitOk;
  const std::vector<std::string> nearest = view.graph().NearestNames(pattern);
  return console.Fail({absl::NotFoundError(absl::StrCat(
                           "no node is named '", pattern, "'",
                           nearest.empty() ? "" : absl::StrCat("; nearest: ", absl::StrJoin(nearest, ", ")))),
                       kExitRunFailed,
                       absl::StrCat("thalweg inspect ", ShellQuote(view.path), " --node ",
                                    ShellQuote(absl::StrCat(".*", pattern, ".*")))});
}

int PrintNodes(const GraphView& view, const std::string& pattern, bool all, Console& console) {
  std::vector<NodeId> matched;
  if (const int code = MatchNodes(view, pattern, console, &matched); code != kExitOk) return code;
  const size_t shown = all ? matched.size() : std::min<size_t>(matched.size(), kMaxNodesShown);
  for (size_t i = 0; i < shown; ++i) PrintNode(view, matched[i], console);
  if (shown < matched.size()) console.Print(absl::StrCat(matched.size() - shown, " more (--all)\n"));
  return kExitOk;
}

// ------------------------------------------------------------------------------------------------- --path

// The edges from `from` to `to`, fewest first, by breadth; empty if there is no way.
std::vector<Consumers::Use> ShortestPath(const GraphView& view, NodeId from, NodeId to) {
  struct Step {
    NodeId parent;
    Consumers::Use use;
  };
  absl::flat_hash_map<NodeId, Step> reached;
  std::vector<NodeId> layer = {from};
  while (!layer.empty() && !reached.contains(to)) {
    std::vector<NodeId> next;
    for (const NodeId id : layer) {
      for (const Consumers::Use& use : view.consumers->of(id)) {
        if (use.node != from && reached.try_emplace(use.node, Step{id, use}).second) next.push_back(use.node);
      }
    }
    layer = std::move(next);
  }
  std::vector<Consumers::Use> path;
  for (NodeId id = to; reached.contains(id); id = reached.at(id).parent) path.push_back(reached.at(id).use);
  std::reverse(path.begin(), path.end());
  return path;
}

int PrintPath(const GraphView& view, const std::vector<std::string>& ends, Console& console) {
  const Graph& graph = view.graph();
  const absl::StatusOr<Endpoint> from = graph.ParseEndpoint(ends[0]), to = graph.ParseEndpoint(ends[1]);
  for (const auto* end : {&from, &to}) {
    if (!end->ok())
      return console.Fail({end->status(), kExitRunFailed, absl::StrCat("thalweg inspect ", ShellQuote(view.path))});
  }
  const std::vector<Consumers::Use> path = ShortestPath(view, from->node, to->node);
  if (path.empty()) {
    return console.Fail(
        {absl::NotFoundError(absl::StrCat("no path leads from '", graph.node(from->node).name, "' to '",
                                          graph.node(to->node).name, "'")),
         kExitRunFailed,
         absl::StrCat("thalweg inspect ", ShellQuote(view.path), " --path ", ShellQuote(ends[1]), " ",
                      ShellQuote(ends[0]))});
  }
  Table table({Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft});
  NodeId at = from->node;
  table.AddRow({std::string(graph.node(at).name), std::string(graph.node(at).op)});
  for (const Consumers::Use& use : path) {
    const std::string edge = use.port == kControlPort ? "control" : TensorText(view, at, use.port);
    at = use.node;
    table.AddRow({std::string(graph.node(at).name), std::string(graph.node(at).op), edge});
  }
  console.Print(table.ToString());
  return kExitOk;
}

// ------------------------------------------------------------------------------------------------- --json

OrderedJson ShapeJson(const PartialShape& shape) {
  if (!shape.has_rank()) return nullptr;
  OrderedJson dims = OrderedJson::array();
  for (const int64_t d : shape.dims()) dims.push_back(IsKnownDim(d) ? OrderedJson(d) : OrderedJson(nullptr));
  return dims;
}

OrderedJson TensorJson(const TensorSummary& tensor) {
  OrderedJson json = {{"name", tensor.name}, {"dtype", DTypeName(tensor.dtype)}, {"shape", ShapeJson(tensor.shape)}};
  if (!tensor.kind.empty()) json["kind"] = tensor.kind;
  json["likely"] = tensor.likely;
  json["reason"] = tensor.reason;
  return json;
}

OrderedJson TensorListJson(const std::vector<TensorSummary>& tensors) {
  OrderedJson list = OrderedJson::array();
  for (const TensorSummary& tensor : tensors) list.push_back(TensorJson(tensor));
  return list;
}

void AddFactsJson(const GraphView& view, OrderedJson* json) {
  const GraphSummary& summary = *view.summary;
  const GraphFacts facts = GatherFacts(view);
  (*json)["nodes"] = summary.nodes;
  (*json)["edges"] = summary.data_edges + summary.control_edges;
  (*json)["parameters"] = summary.parameters;
  (*json)["constant_bytes"] = summary.constant_bytes;
  (*json)["inputs"] = TensorListJson(summary.inputs);
  (*json)["outputs"] = TensorListJson(summary.outputs);
  OrderedJson frames = OrderedJson::array(), functions = OrderedJson::array(), ops = OrderedJson::array();
  for (const FrameFacts& frame : facts.frames)
    frames.push_back({{"name", frame.name}, {"depth", frame.depth}, {"nodes", frame.nodes}});
  for (const OpCoverage& row : facts.coverage)
    ops.push_back({{"op", row.op}, {"nodes", row.nodes}, {"kernels", row.runnable}});
  if (view.graph().functions != nullptr) {
    for (absl::string_view name : view.graph().functions->Names()) functions.push_back(std::string(name));
  }
  (*json)["frames"] = frames;
  (*json)["functions"] = functions;
  (*json)["ops"] = ops;
}

OrderedJson NodeJson(const GraphView& view, NodeId id) {
  const Node& node = view.graph().node(id);
  OrderedJson json = {{"name", std::string(node.name)}, {"op", std::string(node.op)}, {"device", node.requested_device}};
  json["attrs"] = OrderedJson::object();
  for (const auto& [name, value] : node.attrs) json["attrs"][std::string(name)] = AttrToString(value, kAttrCharacters);
  json["inputs"] = OrderedJson::array();
  for (const Endpoint input : node.inputs) {
    const std::string producer(view.graph().node(input.node).name);
    json["inputs"].push_back(input.is_control() ? absl::StrCat("^", producer) : view.graph().EndpointName(input));
  }
  json["outputs"] = OrderedJson::array();
  for (int port = 0; port < node.num_outputs(); ++port) {
    json["outputs"].push_back({{"dtype", DTypeName(node.output_types[port])},
                               {"shape", ShapeJson(view.shapes.output(id, port))}});
  }
  json["readers"] = OrderedJson::array();
  for (const Consumers::Use& use : view.consumers->of(id))
    json["readers"].push_back(std::string(view.graph().node(use.node).name));
  return json;
}

// The document; with `matched`, the nodes of --node too.
void PrintJson(const GraphView& view, const std::vector<NodeId>& matched, Console& console) {
  OrderedJson json = {{"schema", "thalweg.inspect/1"}, {"graph", view.path}, {"file_bytes", view.file_bytes}};
  const GraphVersions& versions = view.graph().versions;
  json["versions"] = {{"producer", versions.producer},
                      {"min_consumer", versions.min_consumer},
                      {"release", ReleaseOfProducer(versions.producer)}};
  if (!view.loaded.has_errors()) AddFactsJson(view, &json);
  json["findings"] = FindingsJson(view);
  if (!matched.empty()) json["matched"] = OrderedJson::array();
  for (const NodeId id : matched) json["matched"].push_back(NodeJson(view, id));
  console.Print(ToText(json));
}

// ------------------------------------------------------------------------------------------------- the verb

// What the check ends with. Faulty frames spoil only some steps: the graph can be looked at, but it is not in order.
int CodeOfCheck(const GraphView& view) {
  return view.loaded.has_errors() || !FrameFaults(view.graph()).empty() ? kExitGraphUnusable : kExitOk;
}

int Inspect(const GraphView& view, const Arguments& arguments, Console& console) {
  const int code = view.loaded.has_errors() ? kExitGraphUnusable : kExitOk;
  const bool all = arguments.Has("all");
  if (arguments.Has("json")) {
    std::vector<NodeId> matched;
    if (const auto pattern = arguments.Value("node"); pattern && code == kExitOk) {
      if (const int failed = MatchNodes(view, *pattern, console, &matched); failed != kExitOk) return failed;
    }
    PrintJson(view, matched, console);
    return CodeOfCheck(view);
  }
  if (arguments.Has("check")) {
    console.Print(FindingsText(view, all, console));
    return CodeOfCheck(view);
  }
  if (code != kExitOk) {
    console.Print(FindingsText(view, all, console));
    const absl::Status status(view.loaded.status().code(), absl::StrCat(view.path, " cannot be used as it is"));
    return console.Fail(
        {status, kExitGraphUnusable, absl::StrCat("thalweg inspect ", ShellQuote(view.path), " --check --all")});
  }
  if (const auto pattern = arguments.Value("node")) return PrintNodes(view, *pattern, all, console);
  if (arguments.Has("path")) return PrintPath(view, arguments.All("path"), console);
  if (arguments.Has("ops")) PrintOps(view, console);
  else PrintSummary(view, all, console);
  return code;
}

int Run(const Arguments& arguments, Console& console) {
  const std::string& path = arguments.positional()[0];
  const absl::StatusOr<FixedShapes> shapes = ReadFixedShapes(arguments);
  if (!shapes.ok()) return console.Fail({shapes.status(), kExitUsage, "thalweg help inspect"});
  if (absl::Status status = CheckIsGraphFile(path); !status.ok()) {
    return console.Fail({status, kExitGraphUnusable, absl::StrCat("ls ", ShellQuote(path))});
  }
  absl::StatusOr<std::unique_ptr<GraphView>> view = [&] {
    const Progress progress(console, absl::StrCat("loading ", path));
    return OpenGraph(path, *shapes);
  }();
  if (!view.ok()) {
    const bool bad_name = !shapes->empty() && absl::StrContains(view.status().message(), shapes->front().first);
    return console.Fail(
        {view.status(), bad_name ? kExitRunFailed : ExitCodeOfLoad(view.status()),
         bad_name ? absl::StrCat("thalweg inspect ", ShellQuote(path)) : AdviceForLoad(path, view.status())});
  }
  return Inspect(**view, arguments, console);
}

}  // namespace

const Verb kInspectVerb{&Spec, &Run};

}  // namespace thalweg::tools
