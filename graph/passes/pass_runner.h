// Runs the rewriting passes over the pruned graph of a step.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/passes/pass.h"
#include "thalweg/graph/prune.h"

namespace thalweg {

// Applies to the graph that `prepare` makes each of `passes` that the request does not disable, timing each and checking
// the graph after it (graph/check.h). If a pass fails or leaves a broken graph, its input is restored by preparing again
// and starting without it (passes are deterministic, so this gives the very graph it got, and success costs no copies);
// its report then says why. Errors are those of `prepare` only.
using PrepareStep = absl::FunctionRef<absl::StatusOr<PrunedGraph>()>;
absl::StatusOr<PrunedGraph> PrepareAndOptimize(PrepareStep prepare, const CompileRequest& request, absl::Span<const Pass> passes,
                                               std::vector<PassReport>* reports);

}  // namespace thalweg
