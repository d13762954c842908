// Hard restrictions on single nodes: feeds and fetches, placement files, pins, and devices that earlier steps chose.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/placement/device_table.h"
#include "thalweg/graph/placement/placement.h"

namespace thalweg {

struct Restriction {
  DeviceSet allowed;
  const char* rule = "";  // "file", "pin", "C21", "feed", "fetch"
  std::string text;       // "pinned to GPU:0 by 'conv.*'"
};

// Nodes that a pin matches. Patterns that are no regular expressions match nothing here: placing reports them.
std::vector<NodeId> PinnedNodes(const Graph& graph, absl::Span<const PlacementPin> pins);

class Restrictions {
 public:
  // NotFound if a pin or file names a device that does not exist, InvalidArgument for malformed names and patterns.
  static absl::StatusOr<Restrictions> Make(const Graph& graph, DeviceTable& devices, const PlacementOptions& options);

  // Null if the node is free.
  const Restriction* For(NodeId node) const {
    auto it = by_node_.find(node);
    return it == by_node_.end() ? nullptr : it->second;
  }
  bool empty() const { return by_node_.empty(); }

 private:
  const Restriction* Add(DeviceSet allowed, const char* rule, std::string text);
  absl::Status AddEarlierChoices(const Graph& graph, const DeviceTable& devices, const PlacementOptions& options);
  absl::Status AddPins(const Graph& graph, DeviceTable& devices, const PlacementOptions& options);
  absl::Status AddFile(const Graph& graph, DeviceTable& devices, const PlacementOptions& options);
  void AddBoundary(const Graph& graph);

  std::vector<std::unique_ptr<Restriction>> all_;
  absl::flat_hash_map<NodeId, const Restriction*> by_node_;
};

}  // namespace thalweg
