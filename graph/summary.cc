#include "thalweg/graph/summary.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/civil_time.h"
#include "thalweg/graph/control_flow.h"
#include "thalweg/graph/functions.h"

namespace thalweg {
namespace {

// Where data enters a graph: the kind shown for ops whose name says it. Checked in order.
struct SourceRule {
  const char* prefix;
  const char* kind;
};
constexpr SourceRule kSourceRules[] = {
    {"Placeholder", "Placeholder"}, {"QueueDequeue", "queue"},     {"IteratorGetNext", "dataset"},
    {"OneShotIterator", "dataset"}, {"ReaderRead", "file"},        {"ReadFile", "file"},
    {"Unstage", "queue"},           {"RandomUniform", "random"},   {"RandomStandardNormal", "random"},
    {"TruncatedNormal", "random"},  {"_Arg", "function argument"},
};

// Ops whose nodes end a graph without being a result that anybody wants to fetch.
constexpr absl::string_view kHelperOps[] = {
    "SaveV2",           "SaveSlices",   "Save",         "RestoreV2", "MergeV2Checkpoints", "Assert", "ScalarSummary",
    "HistogramSummary", "ImageSummary", "MergeSummary", "Const",     "ShardedFilename"};
// Scopes that savers, initialisers, summaries and training add beside the model.
constexpr absl::string_view kHelperScopes[] = {"save",        "init", "gradients", "summary", "report_uninitialized",
                                               "Initializer", "train"};

const char* SourceKind(absl::string_view op) {
  for (const SourceRule& rule : kSourceRules) {
    if (absl::StartsWith(op, rule.prefix)) return rule.kind;
  }
  return nullptr;
}

// The component of `name` that marks it as machinery beside the model, or "".
absl::string_view HelperScope(absl::string_view name) {
  for (const absl::string_view component : absl::StrSplit(name, '/')) {
    absl::string_view word = component;
    // A number may have made it unique: "save_1".
    while (!word.empty() && (word.back() == '_' || absl::ascii_isdigit(static_cast<unsigned char>(word.back()))))
      word.remove_suffix(1);
    if (std::find(std::begin(kHelperScopes), std::end(kHelperScopes), word) != std::end(kHelperScopes))
      return component;
  }
  return "";
}

class Summarizer {
 public:
  Summarizer(const Graph& graph, const InferredShapes& shapes)
      : graph_(graph), shapes_(shapes), consumers_(graph.BuildConsumers()) {}

  GraphSummary Run() {
    CountNodes();
    FindInputs();
    CountReachedInputs();
    FindOutputs();
    return std::move(summary_);
  }

 private:
  TensorSummary Describe(Endpoint endpoint) const {
    TensorSummary tensor;
    tensor.endpoint = endpoint;
    tensor.name = endpoint.is_control() ? std::string(graph_.node(endpoint.node).name) : graph_.EndpointName(endpoint);
    if (!endpoint.is_control()) {
      tensor.dtype = graph_.node(endpoint.node).output_types[static_cast<size_t>(endpoint.port)];
      tensor.shape = shapes_.output(endpoint);
    }
    return tensor;
  }

  void CountNodes() {
    absl::flat_hash_map<absl::string_view, int> counts;
    for (const Node& node : graph_.nodes()) {
      if (node.removed) continue;
      ++summary_.nodes;
      ++counts[node.op];
      summary_.data_edges += node.num_data_inputs;
      summary_.control_edges += static_cast<int64_t>(node.control_inputs().size());
      CountParameters(node);
    }
    for (const auto& [op, count] : counts) summary_.ops.emplace_back(std::string(op), count);
    std::sort(summary_.ops.begin(), summary_.ops.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    summary_.functions = graph_.functions == nullptr ? 0 : static_cast<int64_t>(graph_.functions->size());
  }

  void CountParameters(const Node& node) {
    if (node.is("Const")) {
      const auto* literal = std::get_if<TensorLiteralPtr>(node.attrs.Find("value"));
      if (literal == nullptr) return;
      int64_t sum = 0;
      if (CheckedAdd(summary_.constant_bytes, (*literal)->MaterialisedBytes(), &sum)) summary_.constant_bytes = sum;
      // Scalars are hyper-parameters, not weights.
      if (IsFloating((*literal)->dtype) && (*literal)->shape.rank() > 0)
        AddParameters((*literal)->shape.num_elements());
    } else if (node.is("VariableV2") || node.is("Variable") || node.is("VarHandleOp")) {
      const absl::StatusOr<PartialShape> shape = node.node_attrs().Get<PartialShape>("shape");
      if (shape.ok()) AddParameters(std::max<int64_t>(shape->NumElementsOrUnknown(), 0));
    }
  }

  void AddParameters(int64_t count) {
    int64_t sum = 0;
    if (CheckedAdd(summary_.parameters, count, &sum)) summary_.parameters = sum;
  }

  void FindInputs() {
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node(id);
      const char* const kind = node.removed || node.num_outputs() == 0 ? nullptr : SourceKind(node.op);
      if (kind == nullptr) continue;
      TensorSummary input = Describe({id, 0});
      input.kind = kind;
      const bool read = !consumers_.of(id).empty();
      const bool is_placeholder = node.is("Placeholder") || node.is("PlaceholderV2") || node.is("_Arg");
      const bool is_random = input.kind == "random";
      const absl::string_view scope = HelperScope(node.name);
      input.likely = read && !is_random && scope.empty() && (is_placeholder || input.kind != "Placeholder");
      if (!read) input.reason = "nothing reads it";
      else if (!scope.empty()) input.reason = absl::StrCat("in the scope '", scope, "'");
      else if (is_random) input.reason = "random source: feed it to make results repeatable";
      else if (is_placeholder) input.reason = "must be fed";
      else if (input.kind == "Placeholder") input.reason = "has a default value: may be fed";
      else input.reason = absl::StrCat("data comes from a ", input.kind, ": may be fed instead");
      summary_.inputs.push_back(std::move(input));
    }
    std::stable_partition(summary_.inputs.begin(), summary_.inputs.end(),
                          [](const TensorSummary& t) { return t.likely; });
  }

  // For every node, how many inputs it depends on, up to 64 exactly: one bit each.
  void CountReachedInputs() {
    reached_.assign(static_cast<size_t>(graph_.num_nodes()), 0);
    for (size_t i = 0; i < summary_.inputs.size(); ++i) {
      if (summary_.inputs[i].kind != "random")
        reached_[summary_.inputs[i].endpoint.node] |= uint64_t{1} << std::min<size_t>(i, 63);
    }
    const absl::StatusOr<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!order.ok()) return;
    // What a loop carries is seen in the next round, what its Exits feed in the same; nested loops need a round each.
    constexpr int kMostRounds = 16;
    bool changed = true;
    for (int round = 0; round < kMostRounds && changed; ++round) {
      changed = false;
      for (const NodeId id : *order) {
        const uint64_t before = reached_[id];
        for (const Endpoint source : graph_.node(id).inputs) reached_[id] |= reached_[source.node];
        changed |= reached_[id] != before;
      }
    }
  }

  void FindOutputs() {
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      const Node& node = graph_.node(id);
      if (node.removed || SourceKind(node.op) != nullptr) continue;
      if (node.num_outputs() == 0) {
        if (consumers_.of(id).empty()) AddOutput({id, kControlPort});
        continue;
      }
      std::vector<bool> read(static_cast<size_t>(node.num_outputs()), false);
      bool any = false;
      for (const Consumers::Use& use : consumers_.of(id)) {
        if (use.port == kControlPort) continue;
        any = read[static_cast<size_t>(use.port)] = true;
      }
      // Of a node with several outputs that are read, the unread ones are by-products.
      for (int port = 0; port < node.num_outputs() && !any; ++port) AddOutput({id, port});
    }
    SetAsideUnreadLoopVariables();
    std::stable_sort(summary_.outputs.begin(), summary_.outputs.end(),
                     [this](const TensorSummary& a, const TensorSummary& b) { return Rank(a) < Rank(b); });
  }

  // Loops hand out all of their variables, counters too. Those that nothing reads are results only if nothing else is.
  void SetAsideUnreadLoopVariables() {
    const auto is_exit = [this](const TensorSummary& output) {
      return HasRole(graph_.node(output.endpoint.node), OpRole::kExit);
    };
    std::vector<TensorSummary>& outputs = summary_.outputs;
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const TensorSummary& output) { return output.likely && !is_exit(output); })) {
      return;
    }
    for (TensorSummary& output : outputs) {
      if (!is_exit(output)) continue;
      output.likely = false;
      absl::StrAppend(&output.reason, ", a loop's variable");
    }
  }

  void AddOutput(Endpoint endpoint) {
    const Node& node = graph_.node(endpoint.node);
    TensorSummary output = Describe(endpoint);
    const int inputs = __builtin_popcountll(reached_[endpoint.node]);
    const absl::string_view scope = HelperScope(node.name);
    const bool helper_op = std::find(std::begin(kHelperOps), std::end(kHelperOps), node.op) != std::end(kHelperOps);
    const bool needs_input = !summary_.inputs.empty();
    output.reason = absl::StrCat("no consumers, reaches ", inputs, inputs == 1 ? " input" : " inputs");
    if (endpoint.is_control()) absl::StrAppend(&output.reason, ", a target without outputs");
    if (!scope.empty()) absl::StrAppend(&output.reason, ", in the scope '", scope, "'");
    if (helper_op) absl::StrAppend(&output.reason, ", ", node.op, " is no result");
    output.likely = !endpoint.is_control() && scope.empty() && !helper_op && (!needs_input || inputs > 0);
    summary_.outputs.push_back(std::move(output));
  }

  // Likely ones first, then those that depend on more inputs, then the order of the file from its end: results come
  // last.
  std::tuple<bool, int, NodeId, int32_t> Rank(const TensorSummary& output) const {
    return {!output.likely, -__builtin_popcountll(reached_[output.endpoint.node]), -output.endpoint.node,
            output.endpoint.port};
  }

  const Graph& graph_;
  const InferredShapes& shapes_;
  const Consumers consumers_;
  GraphSummary summary_;
  std::vector<uint64_t> reached_;
};

}  // namespace

GraphSummary SummarizeGraph(const Graph& graph, const InferredShapes& shapes) {
  return Summarizer(graph, shapes).Run();
}

std::string ProducerText(int producer) {
  // Version 30 is 2019-05-09; since then one more every day.
  constexpr int kFirstDaily = 30;
  if (producer < kFirstDaily || producer > 100'000) return absl::StrCat("producer ", producer);
  const absl::CivilDay day = absl::CivilDay(2019, 5, 9) + (producer - kFirstDaily);
  return absl::StrCat("producer ", producer, " (", absl::FormatCivilTime(day), ")");
}

}  // namespace thalweg
