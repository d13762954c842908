// Placement: which device every node runs on, and why.
//
// Two layers: constraints compute each node's feasible devices (kernels per dtype, requested partial names, colocation
// and resource edges by union-find, soft placement); a policy picks among them. The result is a decision record per
// node from which explanations are read, never re-guessed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/shape_inference.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {

// What placement knows of a device.
struct PlacementDevice {
  DeviceName name;      // full
  std::string backend;  // names the set of kernels
  bool host_memory = true;
};

// "Can this backend run this node?", answered over the kernel registry by runtime/.
class KernelCatalog {
 public:
  virtual ~KernelCatalog() = default;
  // OK, or NotFound / InvalidArgument saying which dtypes kernels exist for.
  virtual absl::Status CanRun(const Node& node, const std::string& backend) const = 0;
  virtual int Priority(const Node& node, const std::string& backend) const = 0;
  // Which inputs and outputs (flat) live in host memory on that backend, dtypes that always do included.
  virtual void MemoryKinds(const Node& node, const std::string& backend, std::vector<bool>* host_inputs,
                           std::vector<bool>* host_outputs) const = 0;
};

// Why a candidate was kept or removed. Rule ids are those of the project's rule table (C3, C10, ...).
struct CandidateFact {
  int device = -1;
  bool feasible = false;
  const char* rule = "";    // "C3" no kernel, "C13" requested name, "C11" resource device, "C21" earlier step, "pin", ...
  std::string fact;         // the sentence: "no kernel for ArgMax with T=float32 on backend sim (has: int32)"
  NodeId source = kNoNode;  // the node the fact rests on, if another one
};
// One fact per device, in device order.
using CandidateFacts = std::vector<CandidateFact>;

struct DecisionRecord {
  int device = -1;        // the choice, -1 if none
  const char* rule = "";  // what chose it: "C14" first feasible, "C17" generator, "C18" metadata, "C6" follows its
                          // group, "C15" soft placement, "scatter", "feed", "fetch", ...
  NodeId follows = kNoNode;  // the node whose device this one shares, if that is the reason
  // Never null for a placed node; shared by all nodes that were decided on the same facts.
  std::shared_ptr<const CandidateFacts> candidates;
  NodeId group = kNoNode;  // representative of its colocation group; kNoNode if it is alone
};

struct PlacementPin {
  std::string pattern;  // RE2, matches the whole node name
  std::string device;
};

struct PlacementOptions {
  std::string policy = "default";  // "default", "scatter~SEED"
  bool allow_soft_placement = true;
  std::vector<PlacementPin> pins;                              // hard; the last match wins
  absl::flat_hash_map<std::string, std::string> fixed;         // node -> device, obeyed exactly (a placement file)
  absl::flat_hash_map<std::string, int> stateful_assignments;  // node -> device, C21: earlier choices of this session
};

// Where the placement file puts a node: by its name, or for a copy of a function's node by "function/node". Null if it
// does not say.
const std::string* FixedDevice(const PlacementOptions& options, const Node& node);

struct Placement {
  std::vector<DecisionRecord> records;  // by node id; removed nodes have device -1
};

// InvalidArgument naming the first node that cannot be placed, the rule and the conflict; FailedPrecondition without
// devices. NotFound if an option names a device that does not exist.
absl::StatusOr<Placement> PlaceGraph(const Graph& graph, absl::Span<const PlacementDevice> devices,
                                     const KernelCatalog& kernels, const PlacementOptions& options);

// The devices of the state (variables, queues, ... with everything tied to them by reference and resource edges) of a
// whole loaded graph, by node name: what PlaceGraph must be told so that steps which see different parts of the graph
// agree on them (C21). Groups whose constraints cannot be met are left out: only steps that reach them fail. Entries of
// `options.stateful_assignments` and pins are obeyed.
absl::StatusOr<absl::flat_hash_map<std::string, int>> PlaceState(const Graph& loaded,
                                                                 absl::Span<const PlacementDevice> devices,
                                                                 const KernelCatalog& kernels,
                                                                 const PlacementOptions& options);

// Placement files: {"schema": "thalweg.placement/1", "nodes": {node: device}, "functions": {function: {node: device}}}.
// The nodes of functions get keys "function/node". NotFound if there is no such file, InvalidArgument if it is
// malformed.
absl::StatusOr<absl::flat_hash_map<std::string, std::string>> ReadPlacementFile(const std::string& path);
absl::StatusOr<absl::flat_hash_map<std::string, std::string>> ParsePlacement(absl::string_view json);
// Nodes that a pass or the engine made up are left out: the file names nodes of the user's graph and its functions.
std::string WritePlacementJson(const Graph& graph, const Placement& placement, absl::Span<const PlacementDevice> devices);
// One clause: why the record's device was chosen ("only candidate", "shares a device with 'w'").
std::string PlacementReason(const Graph& graph, const DecisionRecord& record);
// The full explanation of one node's record, several lines.
std::string ExplainPlacement(const Graph& graph, const Placement& placement, absl::Span<const PlacementDevice> devices,
                             NodeId node);

}  // namespace thalweg
