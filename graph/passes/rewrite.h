// What several passes need: telling ops apart, moving readers from one output to another, and sweeping up afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "thalweg/graph/graph.h"
#include "thalweg/proto/tensor_literal.h"

namespace thalweg {

// Switch, Merge, Enter and the like: passes leave them alone.
bool IsControlFlow(const Node& node);
// Switch and the like: an output may carry nothing although the node ran, so a control edge from the node is not the
// same as one from a reader of the output (L1).
bool MayLeaveOutputsEmpty(const Node& node);
// A node that computes its outputs from its inputs and nothing else: no state, no control flow, no references, no
// resources or variants, no function calls, an ordinary kernel. Only such nodes may be merged, folded or simplified
// away.
bool IsPure(const Graph& graph, const Node& node);
bool IsConst(const Node& node);
// The value of a Const, or null.
TensorLiteralPtr ConstValue(const Node& node);
// The value of input `i` if it is a Const that nothing holds back: one without control inputs.
TensorLiteralPtr FreeConstInput(const Graph& graph, const Node& node, int i);

// Lets `into` stand for what `gone` stood for, too. Shortened if a node would stand for very many.
void Absorb(Node& into, const Node& gone);

// Removes what no node in `roots` depends on. Returns whether there was anything.
bool RemoveUnreachable(Graph& graph, const absl::flat_hash_set<NodeId>& roots);

// Takes single-output nodes out of the graph by letting their readers read an earlier output instead.
//
// Offer nodes in topological order; Apply then moves all readers at once. A node is kept where taking it out could be
// noticed: it is preserved, has control inputs, or control readers that need to know whether the value exists.
class Bypass {
 public:
  // Both must outlive this. Nobody else may change the graph before Apply.
  Bypass(Graph& graph, const absl::flat_hash_set<NodeId>& preserve);

  // Readers of the only output of `node` shall read `source` instead. False if the node has to stay.
  bool Offer(NodeId node, Endpoint source);
  // The endpoint that stands for `e` so far.
  Endpoint Resolve(Endpoint e) const;
  // Moves the readers and removes the nodes. Returns whether there were any.
  bool Apply();

 private:
  Graph& graph_;
  const absl::flat_hash_set<NodeId>& preserve_;
  std::vector<bool> has_control_readers_;
  std::vector<Endpoint> replaced_by_;  // node kNoNode: not taken out
  std::vector<NodeId> taken_;
};

}  // namespace thalweg
