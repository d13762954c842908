// One rewriting pass over a pruned graph. Passes never include each other; pass_list.cc holds their order.
//
// A pass changes the graph in place and is idempotent: on its own output it changes nothing. It does bounded work (a pass
// over the graph, or a stated number of rounds), meets loops of any shape, and leaves alone what it does not understand.
// Every node that it changes or makes keeps its provenance (`origin`, `also`, `inserted_by`).
#pragma once

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/shape_inference.h"

namespace thalweg {

struct PassContext {
  const CompileRequest* request = nullptr;
  // Nodes that must stay as they are: feeds, fetches, targets (L11), and what the user has pinned.
  absl::flat_hash_set<NodeId> preserve;
  // Shapes of the graph as it came out of pruning. Nodes that passes have added since are not in it.
  const InferredShapes* shapes = nullptr;
  int num_shaped_nodes = 0;

  // The shape of an output, or null where nothing is known of the node.
  const PartialShape* ShapeOf(Endpoint e) const {
    return e.node < num_shaped_nodes && !e.is_control() ? &shapes->output(e) : nullptr;
  }
};

struct Pass {
  const char* name;  // for --no-opt=NAME and reports
  // Returns whether it changed anything. An error means "as if this pass had not run": see RunPasses.
  absl::StatusOr<bool> (*run)(Graph& graph, const PassContext& context);
};

}  // namespace thalweg
