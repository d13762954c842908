#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "thalweg/graph.pb.h"
#include "thalweg/graph/attr_decode.h"
#include "thalweg/graph/graph_reader.h"

namespace thalweg {
namespace {

class ErrorList : public google::protobuf::io::ErrorCollector {
 public:
  // Lines and columns come counted from zero; a negative line means the whole text.
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    constexpr size_t kMost = 5;
    if (errors_.size() == kMost) return;
    errors_.push_back(line < 0 ? message : absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", message));
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

  std::string ToString() const { return absl::StrJoin(errors_, "; "); }

 private:
  std::vector<std::string> errors_;
};

absl::Status ParseText(absl::string_view text, const LoadLimits& limits, GraphDef* graph) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::ResourceExhaustedError("a text graph may not exceed 2 GiB: convert it to the binary form");
  }
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  ErrorList errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(limits.max_nesting);
  if (parser.Parse(&input, graph)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the text is not a GraphDef: ", errors.ToString()));
}

GraphVersions VersionsOf(const VersionDef& message) {
  GraphVersions versions;
  versions.producer = message.producer();
  versions.min_consumer = message.min_consumer();
  versions.bad_consumers.assign(message.bad_consumers().begin(), message.bad_consumers().end());
  return versions;
}

}  // namespace

void RawNodeOfMessage(const NodeDef& message, RawNode* node) {
  node->Clear();
  node->name = message.name();
  node->op = message.op();
  node->device = message.device();
  for (const std::string& input : message.input()) node->inputs.push_back(input);
  for (const auto& [name, value] : message.attr()) node->attrs.push_back({name, DecodeAttr(value)});
}

absl::Status ReadTextGraph(absl::string_view text, const LoadLimits& limits, GraphSink& sink) {
  GraphDef graph;
  THALWEG_RETURN_IF_ERROR(ParseText(text, limits, &graph));
  if (graph.node_size() > limits.max_nodes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the graph has ", graph.node_size(), " nodes, more than the limit of ", limits.max_nodes));
  }
  sink.OnNodeCount(graph.node_size());
  if (graph.has_versions()) sink.OnVersions(VersionsOf(graph.versions()));
  for (const FunctionDef& function : graph.library().function()) sink.OnFunction(std::make_shared<FunctionDef>(function));
  for (const GradientDef& gradient : graph.library().gradient()) sink.OnGradient(gradient.function_name(), gradient.gradient_func());
  RawNode raw;
  for (NodeDef& node : *graph.mutable_node()) {
    RawNodeOfMessage(node, &raw);
    sink.OnNode(raw);
    node.Clear();  // the graph has its own copy: no need to hold two
  }
  return absl::OkStatus();
}

}  // namespace thalweg
