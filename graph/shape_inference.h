// Shape inference over a whole graph: forward, with symbolic dims and partly known values of shape vectors.
//
// Every dimension that stays unknown gets a symbol of its own, so equal dims of two outputs are equal at run time
// (within one iteration of a loop). What a loop carries (Merge fed by NextIteration) has the shape that enters the loop, as far as
// the loop's body is found to keep it.
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
  // The constant value of an output, or null: of Const nodes, of what passes them on, and of integers that follow from shapes.
  const TensorLiteralPtr& literal(Endpoint e) const { return facts(e).literal; }
  const SymbolicValue& value(Endpoint e) const { return facts(e).value; }

 private:
  friend class ShapeInferrer;
  // What is known of an output besides its shape. Most outputs have nothing, so these are kept apart.
  struct Facts {
    TensorLiteralPtr literal;
    SymbolicValue value;
  };
  const Facts& facts(Endpoint e) const { return facts_[fact_index_[offsets_[e.node] + e.port]]; }

  std::vector<int32_t> offsets_;      // by node: its first output
  std::vector<PartialShape> shapes_;  // by output
  std::vector<int32_t> fact_index_;   // by output: into facts_
  std::vector<Facts> facts_;          // [0] is "nothing known"
};

struct ShapeInferenceOptions {
  // Shapes of fed tensors, overriding what the graph says ("--shape", the shapes of actual feeds).
  absl::flat_hash_map<Endpoint, PartialShape> overrides;
};

// Never fails: contradictions of known shapes become findings (errors) and the node's outputs unknown. Requires a graph
// whose output types are resolved and whose edges are valid; nodes on a cycle are left unknown.
InferredShapes InferShapes(const Graph& graph, const ShapeInferenceOptions& options, std::vector<Finding>* findings);

}  // namespace thalweg
