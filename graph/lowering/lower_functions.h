// Functions and functional control flow become ordinary nodes: calls are replaced by the nodes of their bodies, If and Case
// by Switch and Merge, While by Enter, Merge, Switch, NextIteration and Exit (rules E1-E35, L4-L10).
//
// Everything that may be lowered is, whether or not it is marked: one executor then runs all of it, bodies may spread over
// devices, and passes see through calls. What the nodes compute is what TensorFlow 2.21 computes when it runs a call,
// conditional or loop as one node:
// - nodes with side effects that no result needs run too (function_body.h says which);
// - if there are any, nothing of the body starts before all inputs are there, and no result leaves before all is done;
// - of a node that carries the mark `_lower_using_switch_merge`, results do not wait, and side effects run only if
//   something depends on the node itself, as there.
// What cannot be lowered stays a `_Call`, run as a plan of its own: recursive calls, bodies whose results may be missing,
// and calls beyond the limits below. What is wrong with a call (a missing function, results that do not fit) becomes a
// `_Fail` node, so that only steps which reach it fail.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "thalweg/graph/lowering/function_body.h"
#include "thalweg/graph/prune.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {

struct LoweringLimits {
  int max_added_nodes = 100'000;  // calls that would add more stay calls
  int max_depth = 100;            // of calls within calls
  int max_name_bytes = 4096;      // of nodes, whose names grow with the depth
};

// True for nodes that lowering replaces (direct calls, PartitionedCall, If, While, ...) and for `_Call`.
bool IsOfFunctionalForm(const Node& node);
// True for the call that lowering leaves where it cannot replace one; attrs f and all_stateful (Effects) say what it runs.
bool IsKeptCall(const Node& node);

// The name of this pass in `Node::inserted_by`.
inline constexpr char kLowerFunctions[] = "lower functions";

struct LoweringOptions {
  LoweringLimits limits;
  const FunctionBody* within = nullptr;  // the function whose body the graph is, if it is one
  std::vector<DeviceName> devices;       // that remote calls may name
};

// Lowers what `step` holds, and what that brings in, and removes what is not needed for anything in `step.preserve`.
// Internal if the graph's declarations lack an op that lowering needs; faults of calls are no errors here.
absl::Status LowerFunctions(PrunedGraph& step, const LoweringOptions& options);

}  // namespace thalweg
