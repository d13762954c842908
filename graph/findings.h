// Collecting findings while a graph is loaded and checked: bounded, so that a hostile file cannot turn its faults into
// memory, and ordered by position in the file. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/loader.h"

namespace thalweg {

class FindingList {
 public:
  // Adds an error about a node. `kind` groups findings; of each kind the first 1000 are kept and the rest counted.
  void Error(const char* kind, const Graph& graph, NodeId node, std::string message, std::string advice = "",
             absl::StatusCode code = absl::StatusCode::kInvalidArgument);
  // An error about the whole file.
  void FileError(const char* kind, std::string message, std::string advice = "",
                 absl::StatusCode code = absl::StatusCode::kInvalidArgument);
  void Warning(const char* kind, const Graph& graph, NodeId node, std::string message, std::string advice = "");
  void Note(const char* kind, const Graph& graph, NodeId node, std::string message, std::string advice = "");
  void Add(Finding finding);

  bool has_errors() const { return num_errors_ > 0; }
  // How many findings of this kind there have been: callers stop making costly suggestions after some.
  size_t count(absl::string_view kind) const;

  // All findings, errors first, each severity in file order; says how many more there were. The list is then empty.
  std::vector<Finding> Take();

 private:
  std::vector<Finding> findings_;
  absl::flat_hash_map<std::string, size_t> counts_;
  size_t num_errors_ = 0;
};

// OK if there is no error; else the status of the first one, its message listing the first 20.
absl::Status StatusOfFindings(const std::vector<Finding>& findings);

// Text from a file, made fit for a message: quoted, control characters escaped, the middle left out beyond 120
// characters.
std::string Quoted(absl::string_view text);
// "node 'a/b' (Conv2D)".
std::string NodeLabel(const Node& node);

}  // namespace thalweg
