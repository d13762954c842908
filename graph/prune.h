// Pruning: the part of a loaded graph that one step needs, with its feeds and fetches as nodes.
//
// Rules D15-D22. What is kept is what fetches and targets reach against the direction of edges; a fed tensor cuts the
// search. Every fed endpoint that is still read becomes an `_Arg` node (attrs index: position in `feeds`, T, and
// `_output_shapes` where the graph states one), every fetched one gets an `_Retval` node (attrs index: position in
// `fetches`, T). Feeding an output of anything but a placeholder leaves the node in place for its other outputs and its
// control successors (D16); control edges from a fed placeholder start at the `_Arg` instead. Where a connection stands for a
// tensor, an Identity on that tensor's device takes the place of the `_Arg` (D39).
#pragma once

#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

// A tensor of the graph used in place of another, as if it were fed (D38).
struct Connection {
  Endpoint from;
  Endpoint to;
};

struct StepSignature {
  absl::Span<const Endpoint> feeds;
  absl::Span<const Endpoint> fetches;
  absl::Span<const NodeId> targets;
  absl::Span<const Connection> connections = {};
};

struct PrunedGraph {
  Graph graph;  // `origin` of each node is its id in the loaded graph
  absl::flat_hash_set<NodeId>
      preserve;  // ids in `graph` of feeds, fetched nodes and targets: no pass changes them (L11)
};

// What is fed and fetched comes back as it was fed. InvalidArgument if there is nothing to fetch or run, an endpoint is
// fed or connected twice, a control edge, or a port that its node lacks, or if connections differ in type or make a cycle. Ids must be those of `loaded`.
absl::StatusOr<PrunedGraph> PruneGraph(const Graph& loaded, const StepSignature& signature);

// The ops whose control successors follow a feed (D16), and which a step cannot run without one.
bool IsPlaceholder(const Node& node);

}  // namespace thalweg
