// Which nodes of a graph this build can run, by op and backend.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "thalweg/graph/graph.h"

namespace thalweg::tools {

struct OpCoverage {
  std::string op;
  int64_t nodes = 0;
  bool known = false;  // there is a declaration, or it is a function of the graph
  bool is_function = false;
  std::map<std::string, int64_t> runnable;  // backend -> nodes that have a kernel there
  std::string first_missing_node;           // the first node without a CPU kernel, and why
  std::string first_missing;

  bool complete() const { return known && first_missing.empty(); }
};

// Most frequent ops first. Of a file with unknown ops only those are listed.
std::vector<OpCoverage> CoverageOfGraph(const Graph& graph);
absl::StatusOr<std::vector<OpCoverage>> CoverageOfFile(const std::string& path);

// The backends that this build has kernels for, "cpu" first.
const std::vector<std::string>& Backends();

}  // namespace thalweg::tools
