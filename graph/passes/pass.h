// One rewriting pass over a pruned graph. Passes never include each other; pass_list.cc holds their order.
#pragma once

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

struct PassContext {
  const CompileRequest* request = nullptr;
  // Nodes that must stay as they are: feeds, fetches, targets (L11).
  absl::flat_hash_set<NodeId> preserve;
};

struct Pass {
  const char* name;  // for --no-opt=NAME and reports
  // Changes `graph` in place; an error means "leave the graph as it was" (the runner restores a copy).
  absl::Status (*run)(Graph& graph, const PassContext& context);
};

}  // namespace thalweg
