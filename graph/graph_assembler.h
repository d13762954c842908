// Builds a Graph from the fields that a reader delivers: interns, decodes edge texts, resolves names (also of nodes
// that come later). What it can tell only here (names, edge texts, faulty attributes) goes to the findings; all other
// checks are validate.h's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/functions.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/graph_reader.h"

namespace thalweg {

// An edge as written: "name", "name:port" or "^name".
struct InputText {
  absl::string_view name;
  int32_t port = 0;             // kControlPort for a control input
  const char* fault = nullptr;  // what is wrong with the text, or null
};
InputText ParseInputText(absl::string_view text);

// True for the names that a GraphDef may use: letters, digits and . in front, then also _ / - and '>' between parts.
bool IsValidNodeName(absl::string_view name);

class GraphAssembler : public GraphSink {
 public:
  // Both must outlive the assembler.
  GraphAssembler(const LoadOptions& options, FindingList& findings);

  void OnNodeCount(int64_t count) override;
  void OnNode(const RawNode& raw) override;
  void OnFunction(std::shared_ptr<const FunctionDef> function) override;
  void OnGradient(absl::string_view function, absl::string_view gradient) override;
  void OnVersions(const GraphVersions& versions) override;

  struct Result {
    Graph graph;
    NodeId first_new = 0;                // nodes before it belong to LoadOptions::base
    absl::flat_hash_set<NodeId> faulty;  // nodes with a fault that would make further checks of them misleading
  };
  // Resolves what is left. Call once, after the last field.
  Result Finish();

 private:
  struct PendingInput {
    NodeId node;
    int32_t input;
    size_t name_begin;  // in pending_names_
    size_t name_size;
  };

  void CheckName(NodeId id);
  void AddInputs(const RawNode& raw, NodeId id);
  void AddInput(absl::string_view text, NodeId id);
  void AddAttrs(const RawNode& raw, NodeId id);
  void ShareAttrs(Node& node);
  void ReportUndeclared(NodeId id, const std::vector<const RawNode::RawAttr*>& undeclared);
  void ResolvePending();
  void DropRepeatedControlInputs();
  void MergeVersions();

  const LoadOptions& options_;
  FindingList& findings_;
  Result result_;
  std::shared_ptr<FunctionLibrary> functions_;  // null until there is a function
  GraphVersions versions_;
  std::vector<PendingInput> pending_;
  std::string pending_names_;
  std::vector<const RawNode::RawAttr*> sorted_attrs_;  // reused
  absl::flat_hash_map<absl::string_view, AttrMap> last_attrs_;  // by op: those of its last node, if they are small
};

}  // namespace thalweg
