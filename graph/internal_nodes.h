// Nodes that the engine adds to a graph: the parts all of them share.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

// "function/node": says on a node of a function's body which one it is, wherever the body has been copied to. Placement
// files name such nodes so, and copies share the state of their kernels.
inline constexpr char kFunctionNodeAttr[] = "_function_node";

// A node of `op` with its declaration and nothing else; Internal if `graph.schemas` does not declare that op.
absl::StatusOr<Node> NewInternalNode(const Graph& graph, absl::string_view op);

// The engine's own nodes at the ends of a step: _Arg and _Retval. They belong to the client device and bind nobody else
// to it.
bool IsStepBoundary(const Node& node);

}  // namespace thalweg
