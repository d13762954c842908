// The body of a library function as a graph of its own, for one set of attributes.
//
// Threading: a FunctionBody is immutable and may be shared. FunctionBodies is a cache for one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"

namespace thalweg {

// Which nodes of a body run although no result needs them, as observed with TensorFlow 2.21: where it executes a function
// as one node (direct calls, conditionals and loops that are not marked for lowering, remote calls) every stateful one;
// where it inlines, or calls by PartitionedCall, those that the function lists as control results (E28, E30).
enum class Effects : bool { kControlResults, kAllStateful };

struct FunctionBody {
  FunctionRef function;  // with the declared attributes only, defaults filled in
  // `_Arg` and `_Retval` nodes (attrs index and T) and the nodes of the function under their own names. Each node carries
  // kFunctionNodeAttr (internal_nodes.h); provenance is the id in this graph.
  Graph graph;
  std::vector<NodeId> args;             // the _Arg of every tensor, list arguments flattened
  std::vector<NodeId> results;          // the _Retval of every tensor
  std::vector<NodeId> control_results;  // in the order of the signature
  std::vector<NodeId> stateful;         // without args and results, ascending
  // Control flow of version 1 in the body itself.
  bool has_v1_control_flow = false;
  std::vector<bool> may_be_dead;  // by node: not executed, although the call is, if a Switch in front of it decides so
  std::vector<bool> in_frame;     // by node: in a loop

  DType arg_type(int i) const { return graph.node(args[i]).output_types[0]; }
  Endpoint result(int i) const { return graph.node(results[i]).inputs[0]; }
  DType result_type(int i) const { return graph.node(results[i]).node_attrs().GetOr<DType>("T", DType::kInvalid); }
  const std::vector<NodeId>& effects(Effects which) const {
    return which == Effects::kAllStateful ? stateful : control_results;
  }
  // By node: whether a call executes it.
  std::vector<bool> Needed(Effects which) const;
  // False if the body can only run as a whole: a result may be missing although the call ran, which is an error of the
  // call, or nodes with side effects hide in branches or loops of version 1, where nothing can be made to wait for them.
  bool CanInline(Effects which) const;
};

// NotFound if the library of `context` has no such function. InvalidArgument (or what the validation of nodes gives) naming
// function, node and op if the body is wrong: attributes that the call does not give, inputs and results that name
// nothing, unknown ops, types that do not fit, cycles.
absl::StatusOr<std::shared_ptr<const FunctionBody>> InstantiateFunction(const Graph& context, const FunctionRef& function);

// Instantiates every function once per set of attributes; faults are remembered too.
class FunctionBodies {
 public:
  // `context` gives library, declarations and versions, and must outlive this.
  explicit FunctionBodies(const Graph& context) : context_(context) {}
  absl::StatusOr<std::shared_ptr<const FunctionBody>> Get(const FunctionRef& function);
  size_t size() const { return size_; }

 private:
  struct Entry {
    FunctionRef function;  // with the declared attributes only
    absl::StatusOr<std::shared_ptr<const FunctionBody>> body;
  };
  const Graph& context_;
  absl::flat_hash_map<uint64_t, std::vector<Entry>> bodies_;  // by hash of name and attributes
  size_t size_ = 0;
};

bool operator==(const FunctionRef& a, const FunctionRef& b);
// A hash consistent with ==.
uint64_t HashOf(const FunctionRef& function);

// True for ops that have an attribute of kind func.
bool TakesFunctions(const OpSchema& schema);

// The functions that a node calls or may call: its op, or what its attributes of kind func name.
std::vector<FunctionRef> CalledFunctions(const Node& node);

}  // namespace thalweg
