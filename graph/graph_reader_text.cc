#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "thalweg/graph.pb.h"
#include "thalweg/graph/attr_decode.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/graph_reader.h"
#include "thalweg/graph/wire_reader.h"

namespace thalweg {
namespace {

// Collects the parser's complaints with their places. The parser reports where it stood when it noticed, which is often
// after the word that it complains about; if the message quotes a word that stands just before, that is the place
// meant.
class ErrorList : public google::protobuf::io::ErrorCollector {
 public:
  explicit ErrorList(absl::string_view text) : text_(text) {}

  // Lines and columns come counted from zero; a negative line means the whole text.
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    constexpr size_t kMost = 5;
    if (errors_.size() == kMost) return;
    if (line < 0) {
      errors_.push_back(message);
      return;
    }
    const size_t offset = OffsetOf(line, column);
    // What is "expected" is missing at the very place.
    const size_t place = absl::StartsWith(message, "Expected") ? offset : PlaceOfQuotedWord(message, offset);
    const auto begin = text_.begin();
    const size_t place_line = static_cast<size_t>(std::count(begin, begin + static_cast<ptrdiff_t>(place), '\n'));
    const size_t line_start = place == 0 ? 0 : text_.rfind('\n', place - 1) + 1;  // npos + 1 is 0
    const absl::string_view source = text_.substr(line_start, text_.find('\n', line_start) - line_start);
    errors_.push_back(absl::StrCat("line ", place_line + 1, ", column ", place - line_start + 1, ": ", message, " in ",
                                   Quoted(absl::StripAsciiWhitespace(source))));
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}

  std::string ToString() const { return absl::StrJoin(errors_, "; "); }

 private:
  size_t OffsetOf(int line, int column) const {
    size_t offset = 0;
    for (; line > 0; --line) {
      const size_t end = text_.find('\n', offset);
      if (end == absl::string_view::npos) break;
      offset = end + 1;
    }
    return std::min(offset + static_cast<size_t>(std::max(column, 0)), text_.size());
  }

  size_t PlaceOfQuotedWord(absl::string_view message, size_t offset) const {
    constexpr size_t kJustBefore = 200;
    const size_t from = offset - std::min(offset, kJustBefore);
    const absl::string_view before = text_.substr(from, offset - from);
    const std::vector<absl::string_view> pieces = absl::StrSplit(message, '"');
    size_t nearest = absl::string_view::npos;
    for (size_t i = 1; i < pieces.size(); i += 2) {  // those between quotes
      const size_t found = pieces[i].empty() ? absl::string_view::npos : before.rfind(pieces[i]);
      if (found != absl::string_view::npos && (nearest == absl::string_view::npos || found > nearest)) nearest = found;
    }
    return nearest == absl::string_view::npos ? offset : from + nearest;
  }

  absl::string_view text_;
  std::vector<std::string> errors_;
};

// A binary graph that was cut within its first node may hold nothing that text cannot: its first byte, the tag of a node, is a
// line feed.
bool IsCutBinaryGraph(absl::string_view bytes) {
  return absl::StartsWith(bytes, "\n") && EncodedSizeOfBytesField(bytes).value_or(UINT64_MAX) > bytes.size();
}

absl::Status NotText(absl::string_view text, absl::string_view why) {
  if (!IsCutBinaryGraph(text)) return absl::InvalidArgumentError(why);
  return absl::DataLossError(absl::StrCat("neither a text graph nor a whole binary one, perhaps cut short: ", why));
}

absl::Status ParseText(absl::string_view text, const LoadLimits& limits, GraphDef* graph) {
  absl::ConsumePrefix(&text, "\xef\xbb\xbf");
  if (absl::StripAsciiWhitespace(text).empty()) return NotText(text, "empty: there is nothing but white space in it");
  if (text.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return absl::ResourceExhaustedError("a text graph may not exceed 2 GiB: convert it to the binary form");
  }
  google::protobuf::io::ArrayInputStream input(text.data(), static_cast<int>(text.size()));
  ErrorList errors(text);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.SetRecursionLimit(limits.max_nesting);
  if (parser.Parse(&input, graph)) return absl::OkStatus();
  return NotText(text, absl::StrCat("the text is not a GraphDef: ", errors.ToString()));
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
  for (const FunctionDef& function : graph.library().function())
    sink.OnFunction(std::make_shared<FunctionDef>(function));
  for (const GradientDef& gradient : graph.library().gradient())
    sink.OnGradient(gradient.function_name(), gradient.gradient_func());
  RawNode raw;
  for (NodeDef& node : *graph.mutable_node()) {
    RawNodeOfMessage(node, &raw);
    sink.OnNode(raw);
    node.Clear();  // the graph has its own copy: no need to hold two
  }
  return absl::OkStatus();
}

}  // namespace thalweg
