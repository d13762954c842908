#include "thalweg/graph/provenance.h"

namespace thalweg {

std::vector<std::string> OriginalNames(const Node& node, const Graph& loaded) {
  std::vector<std::string> names;
  if (node.origin != kNoNode) names.emplace_back(loaded.node(node.origin).name);
  if (node.also != nullptr) {
    for (NodeId other : *node.also) names.emplace_back(loaded.node(other).name);
  }
  return names;
}

}  // namespace thalweg
