// Runs the rewriting passes over the pruned graph of a step.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/passes/pass.h"
#include "thalweg/graph/prune.h"

namespace thalweg {

// Prunes `loaded` for the request's signature and applies each of `passes` that the request does not disable, timing
// each and checking the graph after it (graph/check.h). If a pass fails or leaves a broken graph, its input is restored
// by starting again without it (passes are deterministic, so this gives the very graph it got, and success costs no
// copies); its report then says why. Errors are those of pruning only.
absl::StatusOr<PrunedGraph> PruneAndOptimize(const Graph& loaded, const CompileRequest& request,
                                             absl::Span<const Pass> passes, std::vector<PassReport>* reports);

}  // namespace thalweg
