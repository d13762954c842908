// One rewriting pass over a pruned graph. Passes never include each other; pass_list.cc holds their order.
//
// A pass changes the graph in place and is idempotent: on its own output it changes nothing. It does bounded work (a
// pass over the graph, or a stated number of rounds), meets loops of any shape, and leaves alone what it does not
// understand. Every node that it changes or makes keeps its provenance (`origin`, `also`, `inserted_by`).
#pragma once

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/shape_inference.h"

namespace thalweg {

// Shapes of the graph that passes work on, inferred when one first asks: many graphs get by without. Nodes that came
// later have none until Forget is called; rewriting changes no shapes of those that were there. Not thread-safe.
class LazyShapes {
 public:
  // `graph` must outlive this.
  explicit LazyShapes(const Graph& graph) : graph_(graph) {}

  // Null where nothing is known of the node. Must not be asked about removed nodes.
  const PartialShape* Of(Endpoint e) {
    if (num_nodes_ == 0) {
      shapes_ = InferShapes(graph_, {}, nullptr);
      num_nodes_ = graph_.num_nodes();
    }
    return e.node < num_nodes_ && !e.is_control() ? &shapes_.output(e) : nullptr;
  }
  // Infers anew when next asked. What Of has returned is then no longer valid.
  void Forget() { num_nodes_ = 0; }

 private:
  const Graph& graph_;
  InferredShapes shapes_;
  int num_nodes_ = 0;
};

struct PassContext {
  const CompileRequest* request = nullptr;
  // Nodes that must stay as they are: feeds, fetches, targets (L11), and what the user has pinned.
  absl::flat_hash_set<NodeId> preserve;
  LazyShapes* shapes = nullptr;
};

struct Pass {
  const char* name;  // for --no-opt=NAME and reports
  // Returns whether it changed anything. An error means "as if this pass had not run": see RunPasses.
  absl::StatusOr<bool> (*run)(Graph& graph, const PassContext& context);
};

}  // namespace thalweg
