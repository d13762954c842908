#include "thalweg/graph/validate.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "thalweg/graph/cycles.h"
#include "thalweg/graph/functions.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/known_ops.h"
#include "thalweg/graph/nearest.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {
namespace {

// More outputs than this in one graph are an attack: types and shapes are kept for each.
constexpr int64_t kMostOutputs = 16'000'000;
constexpr size_t kMostSuggestions = 20;

bool IsPrintable(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

// The name used in messages, with the one that TensorFlow users know.
std::string TypeText(DType type) {
  switch (RemoveRef(type)) {
    case DType::kFloat32: return absl::StrCat(DTypeName(type), " (float)");
    case DType::kFloat64: return absl::StrCat(DTypeName(type), " (double)");
    default: return DTypeName(type);
  }
}

class Validator {
 public:
  Validator(const ValidateInput& input, Graph& graph, FindingList& findings)
      : input_(input), graph_(graph), findings_(findings), typed_(graph.num_nodes(), true) {}

  void Run() {
    CheckVersions();
    CheckFunctions();
    for (NodeId id = input_.first; id < graph_.num_nodes(); ++id) CheckNode(id);
    for (NodeId id = input_.first; id < graph_.num_nodes(); ++id) CheckEdges(id);
    CheckCycles();
  }

 private:
  bool IsFaulty(NodeId id) const { return input_.faulty != nullptr && input_.faulty->contains(id); }

  void Error(const char* kind, NodeId id, absl::string_view message, std::string advice = "",
             absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
    findings_.Error(kind, graph_, id, absl::StrCat(NodeLabel(graph_.node(id)), ": ", message), std::move(advice), code);
  }

  void CheckVersions() {
    const GraphVersions& versions = graph_.versions;
    if (versions.producer < 0)
      findings_.FileError("version", absl::StrCat("the producer version ", versions.producer, " is negative"));
    if (versions.min_consumer > kGraphVersion) {
      findings_.FileError("version", absl::StrCat("the graph needs a consumer of version ", versions.min_consumer,
                                                  "; this one implements version ", kGraphVersion));
    }
    const auto& bad = versions.bad_consumers;
    if (std::find(bad.begin(), bad.end(), kGraphVersion) != bad.end()) {
      findings_.FileError(
          "version", absl::StrCat("the graph excludes consumers of version ", kGraphVersion, ", which is this one's"));
    }
  }

  void CheckFunctions() {
    if (graph_.functions == nullptr) return;
    for (const absl::string_view name : graph_.functions->Names()) {
      if (input_.schemas->Find(name) == nullptr) continue;
      findings_.FileError("bad function",
                          absl::StrCat("the library function ", Quoted(name), " has the name of a built-in op"),
                          "rename the function");
    }
  }

  // The declaration that the node's arguments and attributes follow; null if the op is unknown.
  const OpSchema* SchemaOf(const Node& node) const {
    if (node.schema != nullptr) return node.schema;
    return graph_.functions == nullptr ? nullptr : graph_.functions->Signature(node.op);
  }

  void CheckNode(NodeId id) {
    const Node& node = graph_.node(id);
    const OpSchema* schema = SchemaOf(node);
    if (IsEngineOp(node.op)) {
      Error("engine op", id, "only an engine makes nodes of this op, for the ends of a step and the edges between devices",
            "load the graph that was given to the engine, not one of its partitions or function bodies");
      typed_[id] = false;
    } else if (schema == nullptr) {
      ReportUnknownOp(id);
      typed_[id] = false;
    } else {
      CheckDeprecation(id, *schema);
      typed_[id] = CheckAttrs(id, *schema) && ResolveOutputs(id, *schema);
    }
    CheckDevice(id);
    CheckColocation(id);
  }

  void ReportUnknownOp(NodeId id) {
    const absl::string_view op = graph_.node(id).op;
    if (op.empty()) {
      Error("unknown op", id, "the node does not say which op it is");
    } else if (!IsPrintable(op)) {
      Error("unknown op", id, "the name of its op is not printable ASCII text");
    } else if (IsKnownOp(op)) {
      Error("unknown op", id, absl::StrCat("the op ", op, " exists in TensorFlow but not in thalweg"),
            "cut it away if the outputs you need do not depend on it", absl::StatusCode::kUnimplemented);
    } else {
      std::string hint;
      if (findings_.count("unknown op") < kMostSuggestions) hint = NearestOps(op);
      Error("unknown op", id, absl::StrCat("there is no op or function of the name ", Quoted(op), hint), "",
            absl::StatusCode::kNotFound);
    }
  }

  std::string NearestOps(absl::string_view op) const {
    NearestNameFinder finder(op, 3);
    for (const absl::string_view known : KnownOps()) finder.Offer(known);
    if (graph_.functions != nullptr) {
      for (const absl::string_view function : graph_.functions->Names()) finder.Offer(function);
    }
    return DidYouMean(finder.Names());
  }

  void CheckDeprecation(NodeId id, const OpSchema& schema) {
    if (schema.deprecated_at <= 0 || graph_.versions.producer < schema.deprecated_at) return;
    Error("deprecated op", id,
          absl::StrCat("the op ", schema.name, " may not be used in graphs of producer version ", schema.deprecated_at,
                       " and later; this graph has version ", graph_.versions.producer),
          schema.deprecation_advice, absl::StatusCode::kUnimplemented);
  }

  bool CheckAttrs(NodeId id, const OpSchema& schema) {
    if (IsFaulty(id)) return false;
    bool good = true;
    for (const AttrDecl& decl : schema.attrs) {
      const Attr* value = graph_.node(id).attrs.Find(decl.name);
      if (value == nullptr) {
        if (decl.has_default) continue;
        Error("missing attribute", id,
              absl::StrCat("the attribute '", decl.name, "' (", decl.KindName(), ") is missing"));
        good = false;
      } else if (const absl::Status status = CheckAttr(decl, *value); !status.ok()) {
        Error("bad attribute", id, status.message());
        good = false;
      } else {
        CheckFunctionExists(id, *value);
      }
    }
    return good && CheckConstant(id);
  }

  // Only a warning: a call of a missing function fails when it runs (L4), and nobody may ever run it.
  void CheckFunctionExists(NodeId id, const Attr& value) {
    const auto* function = std::get_if<std::shared_ptr<const FunctionRef>>(&value);
    if (function == nullptr) return;
    const std::string& name = (*function)->name;
    if (name.empty() || input_.schemas->Find(name) != nullptr) return;
    if (graph_.functions != nullptr && graph_.functions->Find(name) != nullptr) return;
    findings_.Warning("missing function", graph_, id,
                      absl::StrCat(NodeLabel(graph_.node(id)), ": the library has no function ", Quoted(name),
                                   "; steps that call it will fail"));
  }

  bool CheckConstant(NodeId id) {
    const Node& node = graph_.node(id);
    bool good = true;
    for (const auto& [name, value] : node.attrs) {
      const auto* literal = std::get_if<TensorLiteralPtr>(&value);
      if (literal == nullptr) continue;
      if (!(*literal)->fault.empty()) {
        // Fails only the steps that need it (L12).
        findings_.Warning("constant", graph_, id,
                          absl::StrCat(NodeLabel(node), ": attribute '", name, "': ", (*literal)->fault),
                          "steps that need this node will fail");
      }
      if ((*literal)->MaterialisedBytes() <= input_.limits.max_literal_bytes) continue;
      Error("constant", id,
            absl::StrCat("the tensor of attribute '", name, "' takes ", (*literal)->MaterialisedBytes(),
                         " bytes, more than the limit of ", input_.limits.max_literal_bytes),
            "", absl::StatusCode::kResourceExhausted);
      good = false;
    }
    if (!node.is("Const")) return good;
    const auto* dtype = std::get_if<DType>(node.attrs.Find("dtype"));
    const auto* value = std::get_if<TensorLiteralPtr>(node.attrs.Find("value"));
    if (dtype != nullptr && value != nullptr && (*value)->dtype != *dtype) {
      Error("constant", id,
            absl::StrCat("the attribute 'dtype' says ", TypeText(*dtype), " but the value is of type ",
                         TypeText((*value)->dtype)));
      good = false;
    }
    return good;
  }

  bool ResolveOutputs(NodeId id, const OpSchema& schema) {
    Node& node = graph_.mutable_node(id);
    const absl::Status status = ResolveOutputTypes(NodeAttrs(&node.attrs, &schema), &types_);
    if (!status.ok()) {
      Error("bad attribute", id, status.message());
      return false;
    }
    num_outputs_ += static_cast<int64_t>(types_.size());
    if (num_outputs_ > kMostOutputs) {
      if (findings_.count("too many outputs") == 0) {
        Error("too many outputs", id, absl::StrCat("with this node the graph has more than ", kMostOutputs, " outputs"),
              "", absl::StatusCode::kResourceExhausted);
      }
      return false;
    }
    node.output_types.assign(types_.begin(), types_.end());
    return true;
  }

  void CheckDevice(NodeId id) {
    const absl::string_view device = graph_.node(id).requested_device;
    // Interned texts: one address each, so that every text is parsed once.
    if (device.empty() || good_devices_.contains(device.data())) return;
    const absl::Status status = DeviceName::Parse(device).status();
    if (status.ok()) {
      good_devices_.insert(device.data());
    } else {
      Error("bad device", id, absl::StrCat("the device ", Quoted(device), " is malformed: ", status.message()),
            "write /job:J/replica:R/task:T/device:TYPE:ID, or part of it");
    }
  }

  void CheckColocation(NodeId id) {
    const Attr* classes = graph_.node(id).attrs.Find("_class");
    if (classes == nullptr) return;
    const auto* list = std::get_if<std::shared_ptr<const AttrList>>(classes);
    const auto* texts = list == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&(*list)->values);
    if (texts == nullptr) return;  // a hint of another form is ignored (C8)
    for (absl::string_view other : *texts) {
      if (!absl::ConsumePrefix(&other, "loc:@") || graph_.Find(other) != kNoNode) continue;
      const bool suggest = findings_.count("colocation") < kMostSuggestions;
      Error("colocation", id,
            absl::StrCat("it is to be colocated with ", Quoted(other), ", which is not in the graph",
                         suggest ? DidYouMean(graph_.NearestNames(other)) : ""));
    }
  }

  void CheckEdges(NodeId id) {
    const Node& node = graph_.node(id);
    if (IsFaulty(id)) return;
    const OpSchema* schema = typed_[id] ? SchemaOf(node) : nullptr;
    bool typed = false;
    if (schema != nullptr) {
      const absl::Status status = ResolveInputTypes(NodeAttrs(&node.attrs, schema), &types_);
      typed = status.ok();
      if (!typed) Error("bad attribute", id, status.message());
    }
    if (typed && static_cast<int>(types_.size()) != node.num_data_inputs) {
      Error("input count", id,
            absl::StrCat("the op takes ", types_.size(), types_.size() == 1 ? " input (" : " inputs (",
                         SignatureText(*schema), ") but the node has ", node.num_data_inputs));
      typed = false;
    }
    for (int32_t i = 0; i < node.num_data_inputs; ++i)
      CheckDataEdge(id, i, typed ? types_[static_cast<size_t>(i)] : DType::kInvalid);
  }

  static std::string SignatureText(const OpSchema& schema) {
    if (schema.inputs.empty()) return "it has no arguments";
    return absl::StrJoin(schema.inputs, ", ", [](std::string* out, const ArgDecl& arg) {
      absl::StrAppend(out, arg.name, ": ", arg.number_attr.empty() ? "" : absl::StrCat(arg.number_attr, "*"),
                      !arg.type_list_attr.empty() ? arg.type_list_attr
                      : !arg.type_attr.empty()    ? arg.type_attr
                                                  : DTypeName(arg.type));
    });
  }

  // `wanted` is kInvalid if the reader's types are not known.
  void CheckDataEdge(NodeId id, int32_t index, DType wanted) {
    const Endpoint source = graph_.node(id).inputs[static_cast<size_t>(index)];
    if (source.node == kNoNode || !typed_[source.node]) return;
    const Node& producer = graph_.node(source.node);
    if (source.port >= producer.num_outputs()) {
      Error("port", id,
            absl::StrCat("input ", index, " is output ", source.port, " of ", NodeLabel(producer), ", which has ",
                         producer.num_outputs() == 0 ? "no outputs" : absl::StrCat("only ", producer.num_outputs())));
      return;
    }
    const DType given = producer.output_types[static_cast<size_t>(source.port)];
    if (wanted == DType::kInvalid || given == wanted || RemoveRef(given) == wanted) return;
    if (IsRef(wanted) && RemoveRef(wanted) == given) {
      Error("reference", id,
            absl::StrCat("input ", index, " must be a reference (a variable itself) of type ", DTypeName(given),
                         ", but ", graph_.EndpointName(source), " (", producer.op, ") is a value"));
      return;
    }
    Error("dtype", id,
          absl::StrCat("input ", index, " must be ", TypeText(wanted), " but ", graph_.EndpointName(source), " (",
                       producer.op, ") is ", TypeText(given)));
  }

  void CheckCycles() {
    if (graph_.TopologicalOrder().ok()) return;
    for (const std::vector<NodeId>& cycle : FindCycles(graph_)) {
      Error("cycle", cycle.front(),
            absl::StrCat(cycle.size() == 1 ? "it depends on itself: "
                                           : absl::StrCat("it is one of ", cycle.size(), " nodes in a cycle: "),
                         CycleToString(graph_, cycle)),
            "only an edge from NextIteration to Merge may close a cycle");
    }
  }

  const ValidateInput& input_;
  Graph& graph_;
  FindingList& findings_;
  std::vector<bool> typed_;   // output_types of the node are right
  std::vector<DType> types_;  // reused
  absl::flat_hash_set<const char*> good_devices_;
  int64_t num_outputs_ = 0;
};

}  // namespace

void ValidateGraph(const ValidateInput& input, Graph& graph, FindingList& findings) {
  Validator(input, graph, findings).Run();
}

}  // namespace thalweg
