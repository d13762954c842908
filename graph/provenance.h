// Which nodes of the loaded graph a rewritten node stands for.
#pragma once

#include <string>
#include <vector>

#include "thalweg/graph/graph.h"

namespace thalweg {

// The names of those nodes, the one whose value the node computes first; none if a pass made the node up. `loaded` is the graph
// that the node's graph was made from. Pure; thread-safe.
std::vector<std::string> OriginalNames(const Node& node, const Graph& loaded);

}  // namespace thalweg
