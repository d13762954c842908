// Judges, when a graph is loaded, the functions that its nodes can reach.
#pragma once

#include "thalweg/graph/findings.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

// Adds an error for every body that is wrong in itself and for calls with too few arguments (L6), at the node that leads
// there first. Functions that nobody calls may hold anything. Other misfits between a call and its function, and missing
// functions, fail only the steps that make the call (L4). Nodes before `first` have been judged already.
void CheckCalledFunctions(const Graph& graph, NodeId first, FindingList& findings);

}  // namespace thalweg
