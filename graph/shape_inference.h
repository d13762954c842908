// Shape inference over a whole graph: forward, with symbolic dims and partly known values of shape vectors.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/loader.h"
#include "thalweg/graph/shape_context.h"

namespace thalweg {

class InferredShapes {
 public:
  const PartialShape& output(NodeId node, int port) const { return shapes_[offsets_[node] + port]; }
  const PartialShape& output(Endpoint e) const { return output(e.node, e.port); }
  // The constant value of an output (Const nodes and what was derived from them), or null.
  const TensorLiteralPtr& literal(Endpoint e) const { return literals_[offsets_[e.node] + e.port]; }
  const SymbolicValue& value(Endpoint e) const { return values_[offsets_[e.node] + e.port]; }

 private:
  friend class ShapeInferrer;
  std::vector<int32_t> offsets_;
  std::vector<PartialShape> shapes_;
  std::vector<TensorLiteralPtr> literals_;
  std::vector<SymbolicValue> values_;
};

struct ShapeInferenceOptions {
  // Shapes of fed tensors, overriding what the graph says ("--shape", the shapes of actual feeds).
  absl::flat_hash_map<Endpoint, PartialShape> overrides;
};

// Never fails: contradictions of known shapes become findings (errors) and the node's outputs unknown.
InferredShapes InferShapes(const Graph& graph, const ShapeInferenceOptions& options, std::vector<Finding>* findings);

}  // namespace thalweg
