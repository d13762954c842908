// Nodes that the engine adds to a graph: the parts all of them share.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

// "function/node": says on a node of a function's body which one it is, wherever the body has been copied to. Placement
// files name such nodes so, and copies share the state of their kernels.
inline constexpr char kFunctionNodeAttr[] = "_function_node";

// list(int): inputs and outputs that are in host memory whatever the kernel says (A84). Set on _Send, _Recv and the tokens
// of control edges, and obeyed there and on constants.
inline constexpr char kInputHostMemoryAttr[] = "_input_hostmem";
inline constexpr char kOutputHostMemoryAttr[] = "_output_hostmem";

// A node of `op` with its declaration and nothing else; Internal if `graph.schemas` does not declare that op.
absl::StatusOr<Node> NewInternalNode(const Graph& graph, absl::string_view op);

// Ops that only the engine makes nodes of: what their attributes mean is settled elsewhere in the compiled graph (which feed, which
// pair, which function), so that a file cannot bring them along. One that does was written from inside a runtime.
bool IsEngineOp(absl::string_view op);

// The engine's own nodes at the ends of a step: _Arg and _Retval. They belong to the client device and bind nobody else
// to it.
bool IsStepBoundary(const Node& node);

}  // namespace thalweg
