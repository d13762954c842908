// Guards: under which condition each node of a graph with control flow is live, found at compile time.
//
// A guard is a flag (a Switch took this branch, a Merge got a value, an Exit delivered), several flags that must all hold, or
// "always". Nodes of one guard run or are skipped together, with one test. What is structured (the branches of a conditional
// joined again, loops as front ends write them) needs no flags beyond those of the Switches: a Merge of both branches has the
// guard of the conditional, and what follows a loop has the guard of the loop.
//
// Pure function of the FlowGraph. Deadness rules: A19-A28.
#pragma once

#include <cstdint>
#include <vector>

#include "thalweg/runtime/flow_graph.h"

namespace thalweg {

using GuardId = int32_t;
inline constexpr GuardId kAlways = 0;
inline constexpr GuardId kNoGuard = -1;

struct Guard {
  GuardId parent = kAlways;    // holds whenever this one does
  // Of a branch: the predicate as far back as it is merely handed on, and which output.
  Endpoint predicate;
  int32_t branch = -1;
  int32_t branches = 0;
  std::vector<GuardId> all;    // not empty: holds if all of these (which have flags) do
};

struct GuardTable {
  bool too_complex = false;            // the graph is not worth the time that its analysis would take; the rest means nothing then
  std::vector<Guard> guards;           // [0] is kAlways
  std::vector<GuardId> of_node;        // by node: when it runs
  std::vector<GuardId> of_block;       // by frame: when the frame has anything to run
  // By node: the flag (a guard) that executing it sets, or kAlways. Merge: it got a value. Exit: it delivered. Enter: it entered,
  // valid in the first iteration.
  std::vector<GuardId> flag_of_node;
  std::vector<std::vector<GuardId>> branch_flags;  // by node: of a Switch, the flag of each output
  // What tells whether a value arrived on a data edge: the guard of a constant, whose value is always there; kNoGuard where the
  // presence of the value says it.
  GuardId OfEdge(const FlowGraph& graph, Endpoint data) const;
};

GuardTable FindGuards(const FlowGraph& graph);

}  // namespace thalweg
