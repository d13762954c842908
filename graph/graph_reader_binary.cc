#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "thalweg/full_type.pb.h"
#include "thalweg/function.pb.h"
#include "thalweg/graph/attr_decode.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/graph_reader.h"
#include "thalweg/graph/nesting.h"
#include "thalweg/graph/utf8.h"
#include "thalweg/graph/wire_reader.h"
#include "thalweg/versions.pb.h"

namespace thalweg {
namespace {

// Field numbers of the messages that are taken apart here.
enum GraphField { kGraphNode = 1, kGraphLibrary = 2, kGraphVersion = 3, kGraphVersions = 4, kGraphDebugInfo = 5 };
enum NodeField { kNodeName = 1, kNodeOp = 2, kNodeInput = 3, kNodeDevice = 4, kNodeAttr = 5, kNodeType = 7 };
enum MapEntryField { kEntryKey = 1, kEntryValue = 2 };
enum LibraryField { kLibraryFunction = 1, kLibraryGradient = 2 };

class BinaryGraphReader {
 public:
  BinaryGraphReader(FieldStream& stream, const LoadLimits& limits, GraphSink& sink)
      : stream_(stream), limits_(limits), sink_(sink) {}

  absl::Status Read() {
    THALWEG_RETURN_IF_ERROR(CountNodes());
    stream_.Rewind();
    for (StreamField field; stream_.Next(&field);) THALWEG_RETURN_IF_ERROR(ReadGraphField(field));
    return stream_.status();
  }

 private:
  // A first walk over the outermost fields: their lengths are right, and the number of nodes is known.
  absl::Status CountNodes() {
    int64_t nodes = 0;
    bool any_known = false;
    for (StreamField next; stream_.Next(&next, /*contents=*/false);) {
      const WireField& field = next.wire;
      const bool known = field.type == (field.number == kGraphVersion ? WireType::kVarint : WireType::kBytes) &&
                         field.number <= kGraphDebugInfo;
      any_known = any_known || known;
      nodes += field.Is(kGraphNode, WireType::kBytes);
    }
    THALWEG_RETURN_IF_ERROR(stream_.status());
    if (!any_known) return absl::InvalidArgumentError("not a GraphDef: none of its fields is there");
    if (nodes > limits_.max_nodes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the graph has ", nodes, " nodes, more than the limit of ", limits_.max_nodes));
    }
    sink_.OnNodeCount(nodes);
    return absl::OkStatus();
  }

  absl::Status ReadGraphField(const StreamField& field) {
    if (field.wire.type != WireType::kBytes) return absl::OkStatus();  // `version` is obsolete, others are unknown
    switch (field.wire.number) {
      case kGraphNode: return ReadNode(field);
      case kGraphLibrary: return ReadLibrary(field.wire.bytes, field.offset);
      case kGraphVersions: return ReadVersions(field.wire.bytes, field.offset);
      default: return absl::OkStatus();
    }
  }

  absl::Status ReadNode(const StreamField& graph_field) {
    const uint64_t offset = graph_field.offset;
    node_.Clear();
    WireReader reader(graph_field.wire.bytes);
    for (WireField field; reader.Next(&field);) {
      if (field.type != WireType::kBytes) continue;
      switch (field.number) {
        case kNodeName: node_.name = field.bytes; break;
        case kNodeOp: node_.op = field.bytes; break;
        case kNodeInput: node_.inputs.push_back(field.bytes); break;
        case kNodeDevice: node_.device = field.bytes; break;
        case kNodeAttr:
          if (const absl::Status status = ReadAttr(field.bytes, graph_field.owner); !status.ok())
            return InNode(status, offset);
          break;
        case kNodeType:
          // A hint that is not used, but a file that garbles it, or nests it too deep, is not to be trusted.
          if (FullTypeDef type; !Parse(field.bytes, &type)) {
            return InNode(NotParsed("the full type", field.bytes, NestedMessage::kFullType, offset), offset);
          }
          break;
        default: break;
      }
    }
    if (!reader.status().ok()) return InNode(reader.status(), offset);
    THALWEG_RETURN_IF_ERROR(CheckStrings(offset));
    sink_.OnNode(node_);
    return absl::OkStatus();
  }

  absl::Status ReadAttr(absl::string_view entry, const std::shared_ptr<const void>& owner) {
    absl::string_view key, value;
    WireReader reader(entry);
    for (WireField field; reader.Next(&field);) {
      if (field.Is(kEntryKey, WireType::kBytes)) key = field.bytes;
      if (field.Is(kEntryValue, WireType::kBytes)) value = field.bytes;
    }
    THALWEG_RETURN_IF_ERROR(reader.status());
    if (!IsUtf8(key)) return NotUtf8("the name of an attribute", key);
    absl::StatusOr<Attr> attr = DecodeAttrBytes(value, owner, limits_.max_nesting);
    // What the parser refuses, refuses the graph, as a fault of one attribute that means nothing to us does not.
    const bool unparsed = attr.status().code() == absl::StatusCode::kDataLoss ||
                          (!attr.ok() && NestsDeeperThan(value, NestedMessage::kAttrValue, limits_.max_nesting));
    if (unparsed) {
      return absl::Status(attr.status().code(), absl::StrCat("attribute ", Quoted(key), ": ", attr.status().message()));
    }
    node_.attrs.push_back({key, std::move(attr)});
    return absl::OkStatus();
  }

  // The texts of protobuf messages are UTF-8; a file in which they are not is broken.
  absl::Status CheckStrings(uint64_t offset) const {
    if (!IsUtf8(node_.name)) return InNode(NotUtf8("its name", node_.name), offset);
    if (!IsUtf8(node_.op)) return InNode(NotUtf8("its op", node_.op), offset);
    if (!IsUtf8(node_.device)) return InNode(NotUtf8("its device", node_.device), offset);
    for (const absl::string_view input : node_.inputs) {
      if (!IsUtf8(input)) return InNode(NotUtf8("an input", input), offset);
    }
    return absl::OkStatus();
  }

  static absl::Status NotUtf8(absl::string_view what, absl::string_view text) {
    return absl::DataLossError(absl::StrCat(what, " is not UTF-8 text: ", Quoted(text)));
  }

  absl::Status InNode(const absl::Status& status, uint64_t offset) const {
    return absl::Status(status.code(), absl::StrCat("inside the node that starts at byte ", offset, " of the file",
                                            node_.name.empty() ? "" : absl::StrCat(" (", Quoted(node_.name), ")"), ": ",
                                            status.message()));
  }

  absl::Status ReadLibrary(absl::string_view bytes, uint64_t offset) {
    WireReader reader(bytes);
    for (WireField field; reader.Next(&field);) {
      if (field.Is(kLibraryFunction, WireType::kBytes)) {
        auto function = std::make_shared<FunctionDef>();
        if (!Parse(field.bytes, function.get())) {
          return NotParsed("a function of the library", field.bytes, NestedMessage::kFunction, offset);
        }
        sink_.OnFunction(std::move(function));
      } else if (field.Is(kLibraryGradient, WireType::kBytes)) {
        GradientDef gradient;
        if (!Parse(field.bytes, &gradient)) return Corrupt("a gradient of the library", offset);
        sink_.OnGradient(gradient.function_name(), gradient.gradient_func());
      }
    }
    if (reader.status().ok()) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat("inside the function library at byte ", offset, " of the file: ", reader.status().message()));
  }

  absl::Status ReadVersions(absl::string_view bytes, uint64_t offset) {
    VersionDef message;
    if (!Parse(bytes, &message)) return Corrupt("the version information", offset);
    GraphVersions versions;
    versions.producer = message.producer();
    versions.min_consumer = message.min_consumer();
    versions.bad_consumers.assign(message.bad_consumers().begin(), message.bad_consumers().end());
    sink_.OnVersions(versions);
    return absl::OkStatus();
  }

  bool Parse(absl::string_view bytes, google::protobuf::MessageLite* message) const {
    if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
    google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                                 static_cast<int>(bytes.size()));
    input.SetRecursionLimit(limits_.max_nesting);
    return message->ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
  }

  absl::Status NotParsed(absl::string_view what, absl::string_view bytes, NestedMessage message, uint64_t offset) const {
    if (!NestsDeeperThan(bytes, message, limits_.max_nesting)) return Corrupt(what, offset);
    return absl::InvalidArgumentError(
        absl::StrCat(what, " near byte ", offset, " nests deeper than ", limits_.max_nesting, " levels"));
  }

  static absl::Status Corrupt(absl::string_view what, uint64_t offset) {
    return absl::DataLossError(absl::StrCat("corrupt: ", what, " near byte ", offset, " cannot be parsed"));
  }

  FieldStream& stream_;
  const LoadLimits& limits_;
  GraphSink& sink_;
  RawNode node_;  // reused, for its vectors
};

}  // namespace

void RawNode::Clear() {
  name = op = device = absl::string_view();
  inputs.clear();
  attrs.clear();
}

absl::Status ReadBinaryGraph(FieldStream& stream, const LoadLimits& limits, GraphSink& sink) {
  return BinaryGraphReader(stream, limits, sink).Read();
}

}  // namespace thalweg
