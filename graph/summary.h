// What a person wants to know of a graph first: which tensors to feed, which to fetch, what is in it.
//
// Likely inputs and outputs are guesses, each with its reason; nothing is left out, only ranked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "thalweg/graph/graph.h"
#include "thalweg/graph/shape_inference.h"
#include "thalweg/proto/export.h"

namespace thalweg {

struct TensorSummary {
  Endpoint endpoint;  // port kControlPort for a node without outputs (a target)
  std::string name;   // as it can be given back to the program
  DType dtype = DType::kInvalid;
  PartialShape shape;
  std::string kind;    // of an input: "Placeholder", "queue", "dataset", "file", "random", "function argument"
  std::string reason;  // why it is listed, and ranked, so
  bool likely = false;
};

struct GraphSummary {
  std::vector<TensorSummary> inputs;             // likely ones first
  std::vector<TensorSummary> outputs;            // likely ones first, best first
  std::vector<std::pair<std::string, int>> ops;  // by count, then by name
  int64_t nodes = 0;
  int64_t data_edges = 0;
  int64_t control_edges = 0;
  int64_t functions = 0;
  int64_t parameters = 0;      // elements of floating-point constants and variables of known shape
  int64_t constant_bytes = 0;  // of all constants, expanded
};

GraphSummary SummarizeGraph(const Graph& graph, const InferredShapes& shapes);

// "producer 1286 (2022-10-14)"; the old hand-counted versions without a date.
std::string ProducerText(int producer);

}  // namespace thalweg
