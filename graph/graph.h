// Graph: the program as data. Nodes have dense ids; edges are (producer id, port) pairs kept at the consumer.
//
// Not here: devices, kernels, threads. A Graph is built by the loader (or GraphBuilder), checked by Validate, and then
// rewritten by passes on copies. Threading: const use from several threads is fine, and so is changing different
// copies. Strings live in arenas: a copy keeps those of its source alive and writes to its own, so a string_view of a
// name stays valid as long as the graph it was read from, or a copy made of that graph afterwards, lives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/graph/name_index.h"
#include "thalweg/graph/op_schema.h"

namespace thalweg {

class FunctionLibrary;  // graph/functions.h

using NodeId = int32_t;
inline constexpr NodeId kNoNode = -1;
inline constexpr int32_t kControlPort = -1;

// An output of a node; port kControlPort means "after the node has run", no data.
struct Endpoint {
  NodeId node = kNoNode;
  int32_t port = 0;
  bool is_control() const { return port == kControlPort; }
  friend bool operator==(Endpoint a, Endpoint b) { return a.node == b.node && a.port == b.port; }
  friend bool operator<(Endpoint a, Endpoint b) { return a.node != b.node ? a.node < b.node : a.port < b.port; }
  template <typename H>
  friend H AbslHashValue(H h, Endpoint e) {
    return H::combine(std::move(h), e.node, e.port);
  }
};

// What most nodes have few of lies in the node itself: a graph of millions of nodes is one block of memory.
using NodeInputs = absl::InlinedVector<Endpoint, 2>;
using NodeTypes = absl::InlinedVector<DType, 4>;

struct Node {
  absl::string_view name;
  absl::string_view op;
  const OpSchema* schema = nullptr;    // null: `op` is a function of the library (or, before validation, unknown)
  absl::string_view requested_device;  // as written in the file; "" if none
  AttrMap attrs;                       // as written; defaults are in the schema
  NodeInputs inputs;                   // data inputs in order, then control inputs
  NodeTypes output_types;              // one per output; reference types keep their flag
  int32_t num_data_inputs = 0;

  // Which nodes of the loaded graph this one stands for. A node as loaded has origin == its own id there; a rewritten
  // one keeps the id of the node whose value it computes, with others it absorbed in `also`; a node that a pass made up
  // has origin kNoNode and `inserted_by` set to the pass.
  NodeId origin = kNoNode;
  std::shared_ptr<const std::vector<NodeId>> also;
  const char* inserted_by = nullptr;

  int32_t device = -1;   // index into the session's devices once placed
  bool removed = false;  // a pass has taken it out; ids of others do not move

  absl::Span<const Endpoint> data_inputs() const { return absl::MakeConstSpan(inputs).subspan(0, num_data_inputs); }
  absl::Span<const Endpoint> control_inputs() const { return absl::MakeConstSpan(inputs).subspan(num_data_inputs); }
  int num_outputs() const { return static_cast<int>(output_types.size()); }
  NodeAttrs node_attrs() const { return NodeAttrs(&attrs, schema); }
  bool is(absl::string_view op_name) const { return op == op_name; }
  bool stateful() const { return schema != nullptr && schema->stateful; }
};

struct GraphVersions {
  int producer = 0;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};

// True for the one kind of edge that may close a cycle: from a (Ref)NextIteration into a (Ref)Merge.
bool IsLoopBackEdge(const Node& from, const Node& to);

// For every node the nodes that read it: index-based, built on demand, invalid after any change to edges.
class Consumers {
 public:
  struct Use {
    NodeId node;    // the reader
    int32_t input;  // index into its `inputs`
    int32_t port;   // which output of the producer (kControlPort for control)
  };
  absl::Span<const Use> of(NodeId id) const {
    return absl::MakeConstSpan(uses_).subspan(offsets_[id], offsets_[id + 1] - offsets_[id]);
  }

 private:
  friend class Graph;
  std::vector<int32_t> offsets_;
  std::vector<Use> uses_;
};

class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph& other);
  Graph& operator=(const Graph& other);
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;

  int num_nodes() const { return static_cast<int>(nodes_.size()); }  // removed ones included
  const Node& node(NodeId id) const { return nodes_[id]; }
  Node& mutable_node(NodeId id) { return nodes_[id]; }
  absl::Span<const Node> nodes() const { return nodes_; }
  // kNoNode if there is none (or it was removed).
  NodeId Find(absl::string_view name) const;

  // Appends a node and returns its id; copies name, op and requested_device into the arena. If the name is taken, Find
  // keeps answering the older node (only the loader does this, to report the duplicate).
  NodeId AddNode(Node node);
  // Like AddNode for a node invented by `pass`: makes `base` unique by appending "/N" and stamps provenance.
  NodeId AddDerivedNode(absl::string_view base, Node node, const char* pass);
  // Marks a node removed. Whatever still reads it must have been rewired.
  void RemoveNode(NodeId id);
  // Adds a control edge unless it is there already.
  void AddControlEdge(NodeId from, NodeId to);
  // Redirects every reader of `from` (as listed in `consumers`) to `to`. `consumers` stays as it was.
  void RedirectUses(const Consumers& consumers, Endpoint from, Endpoint to);
  void Reserve(int nodes);
  // No nodes, but the versions, functions, declarations and owners of this graph.
  Graph EmptyCopy() const;
  // Appends a node of the graph that this is an EmptyCopy of; its texts are shared, not copied. Its name must be new.
  NodeId AddCopiedNode(Node node);

  Consumers BuildConsumers() const;
  // Ids in an order in which producers come before consumers, back edges into Merge from NextIteration left out;
  // removed nodes are skipped. InvalidArgument naming a cycle's nodes if there is none.
  absl::StatusOr<std::vector<NodeId>> TopologicalOrder() const;
  // A copy without removed nodes, renumbered in topological order. `old_to_new` (optional) gets kNoNode for removed
  // ones.
  absl::StatusOr<Graph> Compacted(std::vector<NodeId>* old_to_new = nullptr) const;
  // Makes this graph so, in its own memory. After an error the graph is of no use.
  absl::Status Compact(std::vector<NodeId>* old_to_new = nullptr);

  absl::string_view Intern(absl::string_view text);

  GraphVersions versions;
  std::shared_ptr<const FunctionLibrary> functions;  // null if there are none
  // The declarations that the nodes' schemas come from, for whoever adds nodes of other ops (_Arg, _Send, Const, ...).
  // Set by the loader, kept by copies; must outlive the graph.
  const OpRegistry* schemas = nullptr;

  // Parses "name", "name:port", "^name" (white space around it trimmed) against this graph. A plain "name" is output 0,
  // or the control output if the node has no outputs. InvalidArgument for malformed text or a port that the node lacks;
  // NotFound with the nearest names for an unknown node.
  absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text) const;
  // "name:port" or "^name".
  std::string EndpointName(Endpoint e) const;
  // Up to `limit` node names with the smallest edit distance to `name` (or sharing its last path component).
  std::vector<std::string> NearestNames(absl::string_view name, int limit = 3) const;
  // One line per node, for stage goldens: "name = Op(in:0, ^ctrl) [attr=...] @device".
  std::string ToString() const;

 private:
  class StringArena;
  void MoveNodes(std::vector<NodeId> new_ids, size_t kept);

  std::vector<Node> nodes_;
  NameIndex by_name_;
  absl::flat_hash_map<absl::string_view, int> derived_counts_;  // next suffix per base name of AddDerivedNode
  std::shared_ptr<StringArena> arena_;                          // written by this graph only
  std::vector<std::shared_ptr<const void>> owners_;             // arenas of the graphs it was copied from
};

}  // namespace thalweg
