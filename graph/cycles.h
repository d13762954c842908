// Cycles in a graph, apart from those that loops close (NextIteration -> Merge).
#pragma once

#include <string>
#include <vector>

#include "thalweg/graph/graph.h"

namespace thalweg {

// One cycle for every strongly connected part of the graph that has one, each in the direction of the edges and
// starting at its smallest id; sorted by that id. Takes linear time and no recursion.
std::vector<std::vector<NodeId>> FindCycles(const Graph& graph);

// "a -> b -> c -> a", shortened in the middle beyond `limit` nodes.
std::string CycleToString(const Graph& graph, const std::vector<NodeId>& cycle, size_t limit = 20);

}  // namespace thalweg
