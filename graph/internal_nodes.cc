#include "thalweg/graph/internal_nodes.h"

#include <algorithm>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thalweg {

absl::StatusOr<Node> NewInternalNode(const Graph& graph, absl::string_view op) {
  Node node;
  node.op = op;
  node.schema = graph.schemas == nullptr ? nullptr : graph.schemas->Find(op);
  if (node.schema == nullptr) {
    return absl::InternalError(absl::StrCat("the op ", op, " that the engine itself needs is not declared"));
  }
  return node;
}

bool IsEngineOp(absl::string_view op) {
  constexpr absl::string_view kOps[] = {"_Arg", "_Call", "_DeviceIndex", "_Fail", "_FusedElementwise", "_Recv", "_Retval", "_Send"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool IsStepBoundary(const Node& node) {
  return node.schema != nullptr && (node.schema->role == OpRole::kArg || node.schema->role == OpRole::kRetval);
}

}  // namespace thalweg
