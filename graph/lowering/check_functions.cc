#include "thalweg/graph/lowering/check_functions.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/functions.h"
#include "thalweg/graph/lowering/function_body.h"

namespace thalweg {
namespace {

// A body can call itself with other attributes each time; whoever needs more than this has been looked at enough.
constexpr size_t kMostBodies = 10'000;

class Checker {
 public:
  Checker(const Graph& graph, FindingList& findings) : graph_(graph), findings_(findings), bodies_(graph) {}

  void CheckFrom(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<FunctionRef> work = CalledFunctions(node);
    if (work.empty()) return;
    const FunctionRef called_first = work[0];
    while (!work.empty() && bodies_.size() < kMostBodies) {
      const FunctionRef function = std::move(work.back());
      work.pop_back();
      const size_t known = bodies_.size();
      const absl::StatusOr<std::shared_ptr<const FunctionBody>> body = bodies_.Get(function);
      if (bodies_.size() == known) continue;
      if (body.ok()) {
        for (const Node& called_by : (*body)->graph.nodes()) {
          for (FunctionRef& called : CalledFunctions(called_by)) work.push_back(std::move(called));
        }
      } else if (graph_.functions->Find(function.name) != nullptr) {
        findings_.Error("bad function", graph_, id, absl::StrCat(NodeLabel(node), " calls a function that cannot be used: ", body.status().message()),
                        "", body.status().code());
      }
    }
    CheckArgumentCount(id, called_first);
  }

 private:
  void CheckArgumentCount(NodeId id, const FunctionRef& function) {
    const Node& node = graph_.node(id);
    if (!node.is("PartitionedCall") && !node.is("StatefulPartitionedCall")) return;
    const absl::StatusOr<std::shared_ptr<const FunctionBody>> body = bodies_.Get(function);
    if (!body.ok() || static_cast<size_t>(node.num_data_inputs) >= (*body)->args.size()) return;
    findings_.Error("input count", graph_, id,
                    absl::StrCat(NodeLabel(node), ": the function ", Quoted(function.name), " takes ", (*body)->args.size(),
                                 " arguments but is given ", node.num_data_inputs),
                    "", absl::StatusCode::kInternal);
  }

  const Graph& graph_;
  FindingList& findings_;
  FunctionBodies bodies_;
};

}  // namespace

void CheckCalledFunctions(const Graph& graph, NodeId first, FindingList& findings) {
  if (graph.functions == nullptr) return;
  Checker checker(graph, findings);
  for (NodeId id = first; id < graph.num_nodes(); ++id) checker.CheckFrom(id);
}

}  // namespace thalweg
