#include "thalweg/graph/partition/reference_reads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/internal_nodes.h"

namespace thalweg {
namespace {

bool WantsReference(const Node& node, int input) {
  if (node.schema == nullptr) return false;
  std::vector<DType> types;
  return ResolveInputTypes(node.node_attrs(), &types).ok() && input < static_cast<int>(types.size()) &&
         IsRef(types[input]);
}

// What `node` waits for besides input `except`, as control inputs: data from references does not count (it is there at
// once).
std::vector<Endpoint> OtherInputs(const Graph& graph, const Node& node, int except) {
  std::vector<Endpoint> others;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const Endpoint input = node.inputs[i];
    if (i == except || (!input.is_control() && IsRef(graph.node(input.node).output_types[input.port]))) continue;
    const Endpoint after{input.node, kControlPort};
    if (std::find(others.begin(), others.end(), after) == others.end()) others.push_back(after);
  }
  return others;
}

}  // namespace

absl::Status ReadReferencesAtSource(Graph& graph, DerivedPlacement& derived) {
  const int num_nodes = graph.num_nodes();
  for (NodeId id = 0; id < num_nodes; ++id) {
    if (graph.node(id).removed) continue;
    for (int i = 0; i < graph.node(id).num_data_inputs; ++i) {
      const Node& node = graph.node(id);
      const Endpoint input = node.inputs[i];
      const Node& producer = graph.node(input.node);
      if (!IsRef(producer.output_types[input.port]) || producer.device == node.device) continue;
      if (WantsReference(node, i)) {
        return absl::InvalidArgumentError(absl::StrCat("node '", node.name, "' (", node.op, ") needs the reference ",
                                                       graph.EndpointName(input),
                                                       " itself, which cannot leave its device [C10]"));
      }
      std::vector<Endpoint> others = OtherInputs(graph, node, i);
      if (others.empty() || node.is("Merge")) continue;
      THALWEG_ASSIGN_OR_RETURN(Node read, NewInternalNode(graph, "Identity"));
      const DType type = RemoveRef(producer.output_types[input.port]);
      read.attrs.Set("T", type);
      read.output_types = {type};
      read.inputs = {input};
      read.num_data_inputs = 1;
      read.inputs.insert(read.inputs.end(), others.begin(), others.end());
      const NodeId reader =
          derived.AddNode(absl::StrCat(producer.name, "/_read"), std::move(read), producer.device, "C10", input.node);
      graph.mutable_node(id).inputs[i] = {reader, 0};
    }
  }
  return absl::OkStatus();
}

}  // namespace thalweg
