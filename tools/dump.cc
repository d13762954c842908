#include "thalweg/tools/dump.h"

#include <re2/re2.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/archive.h"
#include "thalweg/tools/graph_view.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

// Which branches must be taken for a node to run: (predicate of a Switch, its port).
using Conditions = absl::flat_hash_set<std::pair<Endpoint, int>>;

// For each node of a step the conditions it runs under, and whether it is in a loop. Structured conditionals are
// understood: a Merge of both branches of a predicate runs whenever the rest of its conditions hold.
class Reachability {
 public:
  static absl::StatusOr<Reachability> Compute(const Graph& graph) {
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph.TopologicalOrder());
    Reachability result;
    result.conditions_.resize(graph.num_nodes());
    result.loop_depth_.resize(graph.num_nodes(), 0);
    for (const NodeId id : order) result.Visit(graph, id);
    return result;
  }
  bool in_loop(NodeId id) const { return loop_depth_[id] > 0; }
  bool conditional(NodeId id) const { return !conditions_[id].empty(); }

 private:
  void Visit(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    int depth = 0;
    for (const Endpoint input : node.inputs) depth = std::max(depth, loop_depth_[input.node]);
    if (node.is("Enter") || node.is("RefEnter")) ++depth;
    if (node.is("Exit") || node.is("RefExit")) depth = std::max(depth - 1, 0);
    loop_depth_[id] = depth;
    conditions_[id] = node.is("Merge") || node.is("RefMerge") ? OfMerge(graph, node) : OfAllInputs(graph, node);
    if (node.is("Exit") || node.is("RefExit"))
      conditions_[id].clear();  // a loop that is reached leaves through its exits
  }

  Conditions OfInput(const Graph& graph, Endpoint input) const {
    Conditions conditions = conditions_[input.node];
    const Node& producer = graph.node(input.node);
    const bool is_switch = producer.is("Switch") || producer.is("RefSwitch");
    if (is_switch && !input.is_control() && producer.num_data_inputs == 2)
      conditions.insert({producer.inputs[1], input.port});
    return conditions;
  }

  Conditions OfAllInputs(const Graph& graph, const Node& node) const {
    Conditions all;
    for (const Endpoint input : node.inputs) {
      const Conditions conditions = OfInput(graph, input);
      all.insert(conditions.begin(), conditions.end());
    }
    return all;
  }

  // What all inputs need in common, less the predicates that they exclude each other by.
  Conditions OfMerge(const Graph& graph, const Node& node) const {
    Conditions common;
    for (int i = 0; i < node.num_data_inputs; ++i) {
      const Conditions conditions = OfInput(graph, node.inputs[i]);
      if (i == 0) {
        common = conditions;
        continue;
      }
      for (auto it = common.begin(); it != common.end();) {
        const auto next = std::next(it);
        if (!conditions.contains(*it)) common.erase(it);
        it = next;
      }
    }
    return common;
  }

  std::vector<Conditions> conditions_;
  std::vector<int> loop_depth_;
};

absl::StatusOr<absl::flat_hash_set<NodeId>> NodesOfStep(const Graph& graph, const Feeds& feeds,
                                                        const std::vector<std::string>& fetches,
                                                        const std::vector<std::string>& targets) {
  absl::flat_hash_set<Endpoint> fed;
  for (const auto& [name, tensor] : feeds) {
    THALWEG_ASSIGN_OR_RETURN(const Endpoint endpoint, graph.ParseEndpoint(name));
    fed.insert(endpoint);
  }
  std::vector<NodeId> roots;
  for (const auto* names : {&fetches, &targets}) {
    for (const std::string& name : *names) {
      THALWEG_ASSIGN_OR_RETURN(const Endpoint endpoint, graph.ParseEndpoint(name));
      if (!fed.contains(endpoint)) roots.push_back(endpoint.node);
    }
  }
  return Ancestors(graph, roots, fed);
}

bool HasPlainForm(DType dtype) {
  const DType value = RemoveRef(dtype);
  return value != DType::kResource && value != DType::kVariant;
}

}  // namespace

absl::StatusOr<DumpRequest> ParseDump(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--dump: '", text, "' is not RE=FOLDER, as in 'conv.*=values'"));
  }
  RE2::Options quiet;
  quiet.set_log_errors(false);
  const RE2 re(text.substr(0, equals), quiet);
  if (!re.ok())
    return absl::InvalidArgumentError(
        absl::StrCat("--dump: '", re.pattern(), "' is no regular expression: ", re.error()));
  return DumpRequest{text.substr(0, equals), text.substr(equals + 1)};
}

absl::StatusOr<DumpSelection> SelectDumps(const Graph& graph, const std::vector<DumpRequest>& requests,
                                          const Feeds& feeds, const std::vector<std::string>& fetches,
                                          const std::vector<std::string>& targets) {
  THALWEG_ASSIGN_OR_RETURN(const absl::flat_hash_set<NodeId> step, NodesOfStep(graph, feeds, fetches, targets));
  THALWEG_ASSIGN_OR_RETURN(const Reachability reachability, Reachability::Compute(graph));
  DumpSelection selection;
  for (const DumpRequest& request : requests) {
    const RE2 re(request.pattern);
    int64_t matched = 0, not_run = 0, in_loops = 0, conditional = 0, no_form = 0;
    for (NodeId id = 0; id < graph.num_nodes(); ++id) {
      const Node& node = graph.node(id);
      if (!RE2::FullMatch(re2::StringPiece(node.name.data(), node.name.size()), re)) continue;
      ++matched;
      if (!step.contains(id)) ++not_run;
      else if (reachability.in_loop(id)) ++in_loops;
      else if (reachability.conditional(id) || node.is("Switch") || node.is("RefSwitch")) ++conditional;
      else {
        for (int port = 0; port < node.num_outputs(); ++port) {
          if (HasPlainForm(node.output_types[port]))
            selection.items.push_back({absl::StrCat(node.name, ":", port), request.folder});
          else ++no_form;
        }
      }
    }
    const auto skip = [&](int64_t count, absl::string_view why) {
      if (count > 0)
        selection.skipped.push_back(
            absl::StrCat("--dump '", request.pattern, "': left out ", count, " of ", matched, " nodes: ", why));
    };
    if (matched == 0)
      selection.skipped.push_back(absl::StrCat("--dump '", request.pattern, "': no node has such a name"));
    skip(not_run, "this step does not run them");
    skip(in_loops, "inside a loop");
    skip(conditional, "in a branch that may not be taken");
    skip(no_form, "resources and variants have no plain form");
  }
  return selection;
}

absl::Status MakeDumpFolder(const std::string& folder) {
  struct stat info;
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return absl::Status(absl::ErrnoToStatusCode(errno), absl::StrCat("cannot make folder '", folder, "': ", std::strerror(errno)));
  }
  if (stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return absl::FailedPreconditionError(absl::StrCat("'", folder, "' is no folder"));
  return absl::OkStatus();
}

absl::Status WriteDump(const DumpSelection::Item& item, const Tensor& tensor) {
  const std::string file =
      absl::StrCat(item.folder, "/", absl::StrReplaceAll(item.tensor, {{"/", "."}, {":", "."}}), ".npy");
  THALWEG_ASSIGN_OR_RETURN(const std::unique_ptr<TensorWriter> writer, TensorWriter::Create(file));
  THALWEG_RETURN_IF_ERROR(writer->Add(item.tensor, tensor));
  return writer->Finish();
}

}  // namespace thalweg::tools
