// The invariants that every stage after loading keeps. Run after each rewriting pass and before a plan is built.
#pragma once

#include "absl/status/status.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

// OK, or Internal naming the first node that breaks one of:
// - every input names a live node and one of its outputs; data inputs come before control inputs;
// - the types at both ends of a data edge agree (a reference may be read as a value, and an `_Arg` may stand anywhere:
//   feeding a value where a reference is due is the step's error, A69);
// - every node states its provenance: an origin or the pass that made it;
// - without the edges from NextIteration to Merge the graph has no cycle.
absl::Status CheckGraph(const Graph& graph);

}  // namespace thalweg
