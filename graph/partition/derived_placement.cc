#include "thalweg/graph/partition/derived_placement.h"

#include <utility>

namespace thalweg {

NodeId DerivedPlacement::AddNode(absl::string_view base_name, Node node, int device, const char* rule, NodeId follows) {
  const NodeId id = graph_.AddDerivedNode(base_name, std::move(node), "partition");
  placement_.records.resize(graph_.num_nodes());
  Record(id, device, rule, follows);
  return id;
}

void DerivedPlacement::Move(NodeId node, int device, const char* rule, NodeId follows) {
  Record(node, device, rule, follows);
}

void DerivedPlacement::Record(NodeId node, int device, const char* rule, NodeId follows) {
  std::shared_ptr<const CandidateFacts>& facts = facts_[device];
  if (facts == nullptr) {
    auto made = std::make_shared<CandidateFacts>(facts_.size());
    for (size_t d = 0; d < facts_.size(); ++d) {
      (*made)[d].device = static_cast<int>(d);
      (*made)[d].feasible = static_cast<int>(d) == device;
    }
    facts = std::move(made);
  }
  graph_.mutable_node(node).device = device;
  DecisionRecord& record = placement_.records[node];
  record.device = device;
  record.rule = rule;
  record.follows = follows;
  record.candidates = facts;
}

}  // namespace thalweg
