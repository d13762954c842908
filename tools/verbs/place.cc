// thalweg place GRAPH: where every node would run, and why.
#include <re2/re2.h>

#include <algorithm>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/advice.h"
#include "thalweg/tools/file.h"
#include "thalweg/tools/json_text.h"
#include "thalweg/tools/open_session.h"
#include "thalweg/tools/placed_graph.h"
#include "thalweg/tools/session_flags.h"
#include "thalweg/tools/session_json.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

constexpr size_t kRowsShown = 20;

const CommandSpec& Spec() {
  static const CommandSpec* const spec = [] {
    auto* s =
        new CommandSpec{"place", "Shows on which device every node would run, why, and what is copied between devices.",
                        "GRAPH", 1,
                        1,       {},
                        {}};
    s->flags = {
        {FlagKind::kRepeated, "fetch", "f", "TENSOR", "of a step that fetches this (default: the likely outputs)"},
        {FlagKind::kRepeated, "target", "", "NODE", "of a step that runs this node"},
        {FlagKind::kValue, "explain", "", "NODE|RE", "every candidate device of these nodes and the rule that decided"},
        {FlagKind::kSwitch, "transfers", "", "", "every value that is copied, with size and cause"},
        {FlagKind::kValue, "out", "", "p.json", "write the placement, for run --placement"},
        {FlagKind::kSwitch, "all", "", "", "full lists"},
        {FlagKind::kSwitch, "json", "", "", "for programs: one entry per node"},
    };
    AppendPlacementFlags(&s->flags);
    s->examples = {
        "thalweg place model.pb -d CPU:0,CPU:1 -f prob",
        "thalweg place model.pb -d CPU:0,GPU:0=sim --explain 'head/.*'",
        "thalweg place model.pb -d CPU:0,CPU:1 --pin 'conv.*=CPU:1' --out p.json",
    };
    return s;
  }();
  return *spec;
}

// Few words for a rule, for tables that count.
std::string RuleWords(absl::string_view rule) {
  static const auto* const words = new std::map<absl::string_view, const char*>{{"C3", "only this device has a kernel"},
                                                                                {"C6", "colocated with another"},
                                                                                {"C10", "reads a reference there"},
                                                                                {"C11", "uses state there"},
                                                                                {"C13", "requested"},
                                                                                {"C14", "first that can"},
                                                                                {"C15", "request cannot be met"},
                                                                                {"C17", "feeds only nodes there"},
                                                                                {"C18", "looks at a shape only"},
                                                                                {"C21", "its state lives there"},
                                                                                {"B3", "control flow of a loop"},
                                                                                {"B10", "transfer"},
                                                                                {"B11", "transfer"},
                                                                                {"pin", "pinned"},
                                                                                {"file", "placement file"},
                                                                                {"feed", "fed"},
                                                                                {"fetch", "fetched"},
                                                                                {"scatter", "random choice"}};
  const auto found = words->find(rule);
  return found == words->end() ? std::string(rule) : found->second;
}

std::string DeviceName(const PlacedGraph& placed, int device) {
  return device < 0 ? "-" : placed.devices[device].name.ToShortString();
}

// The sum of the known sizes; "at least" if some are not known before the shapes of inputs are.
std::string TransferBytesText(const PlacedGraph& placed) {
  double bytes = 0;
  bool open = false;
  for (const Transfer& transfer : placed.compiled.transfers) {
    open = open || (transfer.bytes < 0 && !transfer.source.is_control());
    bytes += static_cast<double>(std::max<int64_t>(transfer.bytes, 0));
  }
  return absl::StrCat(open ? "at least " : "", FormatBytes(bytes));
}

// ------------------------------------------------------------------------------------------------- tables

void PrintDevices(const PlacedGraph& placed, Console& console) {
  std::vector<std::map<std::string, int64_t>> reasons(placed.devices.size());
  std::vector<int64_t> nodes(placed.devices.size(), 0);
  for (const Node& node : placed.compiled.graph.nodes()) {
    if (node.device < 0) continue;
    ++nodes[node.device];
    ++reasons[node.device][RuleWords(placed.record(node).rule)];
  }
  Table table({Table::Align::kLeft, Table::Align::kRight, Table::Align::kLeft});
  table.AddRow({"device", "nodes", "why"});
  for (size_t d = 0; d < placed.devices.size(); ++d) {
    std::vector<std::pair<int64_t, std::string>> ranked;
    for (const auto& [words, count] : reasons[d]) ranked.emplace_back(-count, words);
    std::sort(ranked.begin(), ranked.end());
    table.AddRow({DeviceName(placed, static_cast<int>(d)), FormatCount(nodes[d]),
                  absl::StrJoin(ranked, ", ", [](std::string* out, const auto& r) {
                    absl::StrAppend(out, FormatCount(-r.first), " ", r.second);
                  })});
  }
  console.Print(table.ToString());
}

void PrintOps(const PlacedGraph& placed, bool all, Console& console) {
  std::map<std::string, std::vector<int64_t>> counts;
  std::map<std::string, std::string> reasons;
  for (const Node& node : placed.compiled.graph.nodes()) {
    if (node.device < 0) continue;
    std::vector<int64_t>& row = counts[std::string(node.op)];
    row.resize(placed.devices.size(), 0);
    ++row[node.device];
    std::string& reason = reasons[std::string(node.op)];
    const std::string words = RuleWords(placed.record(node).rule);
    if (reason.empty()) reason = words;
    else if (reason != words) reason = "several reasons";
  }
  std::vector<std::pair<int64_t, std::string>> ranked;
  for (const auto& [op, row] : counts) {
    int64_t total = 0;
    for (const int64_t n : row) total += n;
    ranked.emplace_back(-total, op);
  }
  std::sort(ranked.begin(), ranked.end());

  std::vector<Table::Align> columns(placed.devices.size() + 2, Table::Align::kRight);
  columns.front() = columns.back() = Table::Align::kLeft;
  Table table(columns);
  std::vector<std::string> header = {"op"};
  for (size_t d = 0; d < placed.devices.size(); ++d) header.push_back(DeviceName(placed, static_cast<int>(d)));
  header.push_back("why");
  table.AddRow(header);
  const size_t shown = all ? ranked.size() : std::min(ranked.size(), kRowsShown);
  for (size_t i = 0; i < shown; ++i) {
    std::vector<std::string> row = {ranked[i].second};
    for (const int64_t n : counts[ranked[i].second]) row.push_back(n == 0 ? "." : FormatCount(n));
    row.push_back(reasons[ranked[i].second]);
    table.AddRow(row);
  }
  console.Print(table.ToString());
  if (shown < ranked.size()) console.Print(absl::StrCat(ranked.size() - shown, " more ops (--all)\n"));
}

void PrintTransfers(const PlacedGraph& placed, bool all, Console& console) {
  std::vector<const Transfer*> ranked;
  for (const Transfer& transfer : placed.compiled.transfers) ranked.push_back(&transfer);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Transfer* a, const Transfer* b) { return a->bytes > b->bytes; });
  Table table(
      {Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft, Table::Align::kRight, Table::Align::kLeft});
  table.AddRow({"value", "from", "to", "size", "cause"});
  const size_t shown = all ? ranked.size() : std::min(ranked.size(), kRowsShown);
  for (size_t i = 0; i < shown; ++i) {
    const Transfer& t = *ranked[i];
    table.AddRow({placed.compiled.graph.EndpointName(t.source), DeviceName(placed, t.source_device),
                  DeviceName(placed, t.destination_device),
                  t.source.is_control() ? "control"
                  : t.bytes < 0         ? "?"
                                        : FormatBytes(static_cast<double>(t.bytes)),
                  t.cause});
  }
  if (ranked.empty()) console.Print("no transfers: everything runs on one device\n");
  else console.Print(table.ToString());
  if (shown < ranked.size()) console.Print(absl::StrCat(ranked.size() - shown, " more transfers (--all)\n"));
}

void PrintReport(const PlacedGraph& placed, const SessionOptions& options, bool all, Console& console) {
  int64_t from_graph = 0;
  for (const Node& node : placed.compiled.graph.nodes()) from_graph += node.origin != kNoNode;
  console.Print(absl::StrCat("policy ", options.policy, "   ", FormatCount(from_graph), " of ",
                             Plural(placed.loaded_nodes, "node"), " run, ",
                             FormatCount(placed.compiled.graph.num_nodes() - from_graph), " added   ",
                             Plural(static_cast<int64_t>(placed.compiled.transfers.size()), "transfer"), ", ",
                             TransferBytesText(placed), "   fetches ", absl::StrJoin(placed.fetches, ", "), "\n"));
  PrintDevices(placed, console);
  console.Print("\n");
  PrintOps(placed, all, console);
  if (!placed.compiled.transfers.empty()) {
    console.Print("\n");
    PrintTransfers(placed, all, console);
  }
}

// ------------------------------------------------------------------------------------------------- --explain

int Explain(const PlacedGraph& placed, const std::string& pattern, const std::string& path, bool all,
            Console& console) {
  RE2::Options quiet;
  quiet.set_log_errors(false);
  const RE2 re(pattern, quiet);
  if (!re.ok()) {
    return console.Fail({absl::InvalidArgumentError(absl::StrCat(
                             "--explain: '", pattern, "' is neither a node nor a regular expression: ", re.error())),
                         kExitUsage, "thalweg help names"});
  }
  const Graph& graph = placed.compiled.graph;
  const auto is_asked = [&](absl::string_view name) {
    return name == pattern || RE2::FullMatch(re2::StringPiece(name.data(), name.size()), re);
  };
  size_t matched = 0;
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = graph.node(id);
    // A node that passes have made part of another one is where that one is.
    const std::vector<std::string>& originals = placed.originals[id];
    const auto part = std::find_if(originals.begin(), originals.end(), is_asked);
    const bool is_part = !is_asked(node.name) && part != originals.end();
    if (!is_asked(node.name) && !is_part) continue;
    if (all || matched < kRowsShown) {
      if (is_part) console.Print(absl::StrCat("'", *part, "' is part of '", node.name, "', ", node.op, "\n"));
      console.Print(ExplainPlacement(graph, placed.compiled.placement, placed.devices, id));
    }
    ++matched;
  }
  if (!all && matched > kRowsShown) console.Print(absl::StrCat(matched - kRowsShown, " more nodes (--all)\n"));
  if (matched > 0) return kExitOk;
  const std::vector<std::string> nearest = graph.NearestNames(pattern);
  return console.Fail({absl::NotFoundError(absl::StrCat(
                           "no node of this step is named '", pattern, "'",
                           nearest.empty() ? "" : absl::StrCat("; nearest: ", absl::StrJoin(nearest, ", ")),
                           " (a pass may have folded it: see --no-opt)")),
                       kExitRunFailed,
                       absl::StrCat("thalweg place ", ShellQuote(path), " --no-opt --explain ", ShellQuote(pattern))});
}

// ------------------------------------------------------------------------------------------------- --json

OrderedJson NodeJson(const PlacedGraph& placed, NodeId id) {
  const Graph& graph = placed.compiled.graph;
  const Node& node = graph.node(id);
  OrderedJson json = {
      {"node", std::string(node.name)}, {"op", std::string(node.op)}, {"outputs", OrderedJson::array()}};
  for (int port = 0; port < node.num_outputs(); ++port) {
    json["outputs"].push_back(
        {{"dtype", DTypeName(node.output_types[port])}, {"shape", placed.compiled.shapes.output(id, port).ToString()}});
  }
  json["stands_for"] = placed.originals[id];
  json["requested"] = std::string(node.requested_device);
  json["assigned"] = DeviceName(placed, node.device);
  json["rule"] = placed.compiled.placement.records[id].rule;
  json["reason"] = PlacementReason(graph, placed.compiled.placement.records[id]);
  return json;
}

void PrintJson(const PlacedGraph& placed, const std::string& path, const SessionOptions& options, Console& console) {
  OrderedJson json = {{"schema", "thalweg.place/1"}, {"config", {{"graph", path}}}};
  json["config"].update(SessionOptionsJson(options));
  json["fetches"] = placed.fetches;
  json["devices"] = OrderedJson::array();
  for (const PlacementDevice& device : placed.devices)
    json["devices"].push_back({{"name", device.name.ToShortString()}, {"backend", device.backend}});
  json["nodes"] = OrderedJson::array();
  for (NodeId id = 0; id < placed.compiled.graph.num_nodes(); ++id) json["nodes"].push_back(NodeJson(placed, id));
  json["transfers"] = OrderedJson::array();
  for (const Transfer& t : placed.compiled.transfers) {
    json["transfers"].push_back({{"value", placed.compiled.graph.EndpointName(t.source)},
                                 {"from", DeviceName(placed, t.source_device)},
                                 {"to", DeviceName(placed, t.destination_device)},
                                 {"bytes", t.bytes},
                                 {"cause", t.cause}});
  }
  console.Print(ToText(json));
}

// ------------------------------------------------------------------------------------------------- the verb

int Report(const PlacedGraph& placed, const SessionOptions& options, const Arguments& arguments, Console& console) {
  const std::string& path = arguments.positional()[0];
  const bool all = arguments.Has("all");
  if (const auto out = arguments.Value("out")) {
    const absl::Status status =
        WriteFile(*out, WritePlacementJson(placed.compiled.graph, placed.compiled.placement, placed.devices));
    if (!status.ok()) return console.Fail({status, kExitRunFailed, "df -h ."});
  }
  if (arguments.Has("json")) {
    PrintJson(placed, path, options, console);
    return kExitOk;
  }
  if (const auto pattern = arguments.Value("explain")) return Explain(placed, *pattern, path, all, console);
  if (arguments.Has("transfers")) PrintTransfers(placed, all, console);
  else PrintReport(placed, options, all, console);
  return kExitOk;
}

int Run(const Arguments& arguments, Console& console) {
  const std::string& path = arguments.positional()[0];
  const SessionFlagsResult session = ReadSessionFlags(arguments);
  if (!session.failure.status.ok()) return console.Fail(session.failure);
  if (const auto out = arguments.Value("out")) {
    if (absl::Status status = CheckCanWrite(*out); !status.ok())
      return console.Fail({ForFlag("out", status), kExitUsage, "thalweg help place"});
  }
  if (absl::Status status = CheckIsGraphFile(path); !status.ok()) {
    return console.Fail({status, kExitGraphUnusable, absl::StrCat("ls ", ShellQuote(path))});
  }
  const absl::StatusOr<std::unique_ptr<GraphView>> view = OpenGraph(path);
  if (!view.ok())
    return console.Fail({view.status(), ExitCodeOfLoad(view.status()), AdviceForLoad(path, view.status())});
  if ((*view)->loaded.has_errors()) {
    const absl::Status status = (*view)->loaded.status();
    return console.Fail({status, kExitGraphUnusable, AdviceForLoad(path, status)});
  }
  std::vector<std::string> fetches = arguments.All("fetch");
  const std::vector<std::string> targets = arguments.All("target");
  if (fetches.empty() && targets.empty()) fetches = LikelyFetches(*(*view)->summary);
  if (fetches.empty() && targets.empty()) {
    return console.Fail({absl::InvalidArgumentError(
                             "this graph has no output that stands out; say what a step should fetch with -f TENSOR"),
                         kExitUsage, absl::StrCat("thalweg inspect ", ShellQuote(path), " --all")});
  }
  const absl::StatusOr<PlacedGraph> placed = PlaceView(**view, session.options, fetches, targets);
  if (!placed.ok()) {
    const ExitCode code = LacksDevice(placed.status()) ? kExitDeviceMissing : kExitRunFailed;
    return console.Fail({placed.status(), code, AdviceForStep("place", path, placed.status())});
  }
  for (const std::string& line : RequestsWithoutNodes(session.options, (*view)->graph())) console.Warn(line);
  return Report(*placed, session.options, arguments, console);
}

}  // namespace

const Verb kPlaceVerb{&Spec, &Run};

}  // namespace thalweg::tools
