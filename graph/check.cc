#include "thalweg/graph/check.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace thalweg {
namespace {

absl::Status Broken(const Node& node, const std::string& what) {
  return absl::InternalError(absl::StrCat("graph check: node ", node.name, " (", node.op, ") ", what));
}

absl::Status CheckEdge(const Graph& graph, const Node& node, int index) {
  const Endpoint input = node.inputs[index];
  if (input.node < 0 || input.node >= graph.num_nodes()) {
    return Broken(node, absl::StrCat("input ", index, " names node ", input.node, ", which does not exist"));
  }
  const Node& producer = graph.node(input.node);
  if (producer.removed)
    return Broken(node, absl::StrCat("input ", index, " comes from the removed node ", producer.name));
  const bool is_data = index < node.num_data_inputs;
  if (is_data == input.is_control()) return Broken(node, absl::StrCat("mixes data and control inputs at ", index));
  if (is_data && (input.port < 0 || input.port >= producer.num_outputs())) {
    return Broken(node,
                  absl::StrCat("input ", index, " reads ", producer.name, ":", input.port, ", which does not exist"));
  }
  return absl::OkStatus();
}

absl::Status CheckInputTypes(const Graph& graph, const Node& node, std::vector<DType>& types) {
  if (node.schema == nullptr) return absl::OkStatus();  // a function: its signature is checked by the library
  types.clear();
  THALWEG_RETURN_IF_ERROR(ResolveInputTypes(node.node_attrs(), &types));
  if (static_cast<int>(types.size()) != node.num_data_inputs) {
    return Broken(node, absl::StrCat("has ", node.num_data_inputs, " inputs, its declaration ", types.size()));
  }
  for (int i = 0; i < node.num_data_inputs; ++i) {
    const Node& producer = graph.node(node.inputs[i].node);
    const DType have = producer.output_types[node.inputs[i].port];
    const bool fits =
        have == types[i] || RemoveRef(have) == types[i] || (producer.is("_Arg") && have == RemoveRef(types[i]));
    if (!fits) {
      return Broken(node, absl::StrCat("input ", i, " is ", DTypeName(types[i]), " but ",
                                       graph.EndpointName(node.inputs[i]), " gives ", DTypeName(have)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckGraph(const Graph& graph) {
  std::vector<DType> types;
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    if (node.num_data_inputs < 0 || node.num_data_inputs > static_cast<int>(node.inputs.size())) {
      return Broken(node, "has a wrong count of data inputs");
    }
    if (node.origin == kNoNode && node.inserted_by == nullptr) return Broken(node, "has no provenance");
    for (size_t i = 0; i < node.inputs.size(); ++i)
      THALWEG_RETURN_IF_ERROR(CheckEdge(graph, node, static_cast<int>(i)));
    THALWEG_RETURN_IF_ERROR(CheckInputTypes(graph, node, types));
  }
  absl::StatusOr<std::vector<NodeId>> order = graph.TopologicalOrder();
  if (!order.ok()) return absl::InternalError(absl::StrCat("graph check: ", order.status().message()));
  return absl::OkStatus();
}

}  // namespace thalweg
