// Checks a graph that has been read against what its ops declare and against itself, and fills in the output types.
//
// All faults are reported, not the first; a fault is not reported again through its consequences (a node whose
// attributes are wrong has no output types, so its readers' types are not judged). Checked, in this order:
//   versions, function library, and per node: op known and not deprecated, attributes (present, kind, minimum, allowed
//   values), output count, constants, device text, colocation; then per edge: count, ports, types, references; then
//   cycles.
// Not checked here: names and edge texts (graph_assembler.h), shapes (shape_inference.h), whether frames of v1 loops
// fit (G19), bodies of functions, kernels and devices.
#pragma once

#include "absl/container/flat_hash_set.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/loader.h"

namespace thalweg {

// The graph version that this engine implements: the one of TensorFlow 2.21.
inline constexpr int kGraphVersion = 2474;

struct ValidateInput {
  const OpRegistry* schemas = nullptr;
  LoadLimits limits;
  NodeId first = 0;                                     // nodes before it have been checked already
  const absl::flat_hash_set<NodeId>* faulty = nullptr;  // nodes not to be judged any further (may be null)
};

void ValidateGraph(const ValidateInput& input, Graph& graph, FindingList& findings);

// One attribute against its declaration. OK, or InvalidArgument naming the attribute and both sides.
absl::Status CheckAttr(const AttrDecl& decl, const Attr& value);

}  // namespace thalweg
