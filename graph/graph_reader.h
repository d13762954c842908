// Reads the fields of a GraphDef, binary or text, and hands them over one by one. What they mean is the sink's
// business.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/attrs.h"
#include "thalweg/graph/field_stream.h"
#include "thalweg/graph/graph.h"
#include "thalweg/graph/loader.h"

namespace thalweg {

class FunctionDef;
class NodeDef;

// A node as it stands in the file. Views are valid during GraphSink::OnNode only.
struct RawNode {
  struct RawAttr {
    absl::string_view name;
    absl::StatusOr<Attr> value;
  };
  absl::string_view name;
  absl::string_view op;
  absl::string_view device;
  std::vector<absl::string_view> inputs;
  std::vector<RawAttr> attrs;  // in the order of the file; of equal names the last one counts

  void Clear();
};

class GraphSink {
 public:
  virtual ~GraphSink() = default;
  // Called once before the first node, with the number of nodes to come.
  virtual void OnNodeCount(int64_t count) = 0;
  virtual void OnNode(const RawNode& node) = 0;
  virtual void OnFunction(std::shared_ptr<const FunctionDef> function) = 0;
  virtual void OnGradient(absl::string_view function, absl::string_view gradient) = 0;
  virtual void OnVersions(const GraphVersions& versions) = 0;
};

// DataLoss for truncated or garbled bytes, InvalidArgument for bytes that hold nothing of a GraphDef, ResourceExhausted
// beyond limits.max_nodes.
absl::Status ReadBinaryGraph(FieldStream& stream, const LoadLimits& limits, GraphSink& sink);

// InvalidArgument listing faults with line and column.
absl::Status ReadTextGraph(absl::string_view text, const LoadLimits& limits, GraphSink& sink);

// Views of the message, which must outlive the result.
void RawNodeOfMessage(const NodeDef& message, RawNode* node);

}  // namespace thalweg
