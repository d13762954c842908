// Adds nodes to a placed graph: every new node gets a device and a decision record with it.
#pragma once

#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

class DerivedPlacement {
 public:
  // All must outlive this.
  DerivedPlacement(Graph& graph, Placement& placement, int num_devices)
      : graph_(graph), placement_(placement), facts_(num_devices) {}

  // `rule` says why it is there, `follows` which node asked for it.
  NodeId AddNode(absl::string_view base_name, Node node, int device, const char* rule, NodeId follows);
  // Gives an existing node another device.
  void Move(NodeId node, int device, const char* rule, NodeId follows);

 private:
  void Record(NodeId node, int device, const char* rule, NodeId follows);

  Graph& graph_;
  Placement& placement_;
  std::vector<std::shared_ptr<const CandidateFacts>> facts_;  // per device: "this one and no other"
};

}  // namespace thalweg
