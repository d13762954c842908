#include "thalweg/graph/graph_assembler.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/nearest.h"

namespace thalweg {
namespace {

// Looking for similar names walks over all nodes: worth it for the first faults, not for every one of many.
constexpr size_t kMostSuggestions = 20;

bool IsNameStart(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.'; }
bool IsNameRest(char c) { return IsNameStart(c) || c == '_' || c == '/' || c == '-'; }

bool IsPrintable(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

// What an attribute that the declaration lacks most likely is: a newer writer's default.
bool LooksLikeDefault(const Attr& value) {
  if (const auto* b = std::get_if<bool>(&value)) return !*b;
  if (const auto* i = std::get_if<int64_t>(&value)) return *i == 0;
  if (const auto* f = std::get_if<float>(&value)) return *f == 0;
  if (const auto* s = std::get_if<std::string>(&value)) return s->empty();
  if (const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&value)) return (*list)->values.index() == 0;
  return false;
}

void EraseRepeated(NodeInputs* inputs, size_t begin) {
  constexpr size_t kFewEnoughToScan = 16;
  const auto first = inputs->begin() + static_cast<ptrdiff_t>(begin);
  if (inputs->size() - begin <= kFewEnoughToScan) {
    auto end = first;
    for (auto it = first; it != inputs->end(); ++it) {
      if (std::find(first, end, *it) == end) *end++ = *it;
    }
    inputs->erase(end, inputs->end());
    return;
  }
  absl::flat_hash_set<Endpoint> seen;
  inputs->erase(std::remove_if(first, inputs->end(), [&seen](Endpoint e) { return !seen.insert(e).second; }),
                inputs->end());
}

}  // namespace

InputText ParseInputText(absl::string_view text) {
  InputText input;
  const size_t digits =
      text.size() -
      static_cast<size_t>(std::find_if_not(text.rbegin(), text.rend(), absl::ascii_isdigit) - text.rbegin());
  const bool has_port = digits < text.size() && digits >= 2 && text[digits - 1] == ':';
  input.name = has_port ? text.substr(0, digits - 1) : text;
  if (has_port && !absl::SimpleAtoi(text.substr(digits), &input.port)) input.fault = "its port does not fit 32 bits";
  if (absl::StartsWith(input.name, "^")) {
    input.name.remove_prefix(1);
    input.port = kControlPort;
    if (has_port) input.fault = "a control input has no port";
  }
  if (input.name.empty()) input.fault = "it names no node";
  return input;
}

bool IsValidNodeName(absl::string_view name) {
  bool at_start = true;  // of the name, or of a part after '>'
  for (const char c : name) {
    if (c == '>' && !at_start) {
      at_start = true;
    } else if (at_start ? IsNameStart(c) : IsNameRest(c)) {
      at_start = false;
    } else {
      return false;
    }
  }
  return !at_start;
}

GraphAssembler::GraphAssembler(const LoadOptions& options, FindingList& findings)
    : options_(options), findings_(findings) {
  if (options.base != nullptr) {
    result_.graph = *options.base;
    if (options.base->functions != nullptr) functions_ = std::make_shared<FunctionLibrary>(*options.base->functions);
  }
  result_.graph.schemas = options.schemas;
  result_.first_new = result_.graph.num_nodes();
}

void GraphAssembler::OnNodeCount(int64_t count) {
  result_.graph.Reserve(result_.graph.num_nodes() + static_cast<int>(count));
}

void GraphAssembler::OnNode(const RawNode& raw) {
  Node node;
  node.name = raw.name.substr(0, static_cast<size_t>(options_.limits.max_name_bytes));
  node.op = raw.op.substr(0, static_cast<size_t>(options_.limits.max_name_bytes));
  node.requested_device = raw.device.substr(0, static_cast<size_t>(options_.limits.max_name_bytes));
  node.schema = options_.schemas->Find(raw.op);
  node.origin = result_.graph.num_nodes();
  const NodeId id = result_.graph.AddNode(std::move(node));
  if (raw.name.size() > static_cast<size_t>(options_.limits.max_name_bytes)) {
    findings_.Error("bad name", result_.graph, id,
                    absl::StrCat(NodeLabel(result_.graph.node(id)), ": the name has ", raw.name.size(),
                                 " characters, more than ", options_.limits.max_name_bytes));
  }
  CheckName(id);
  AddInputs(raw, id);
  AddAttrs(raw, id);
}

void GraphAssembler::CheckName(NodeId id) {
  const Graph& graph = result_.graph;
  const Node& node = graph.node(id);
  if (!IsValidNodeName(node.name)) {
    findings_.Error("bad name", graph, id,
                    node.name.empty()
                        ? absl::StrCat("node number ", id - result_.first_new + 1, " of the file (", Quoted(node.op),
                                       ") has no name")
                        : absl::StrCat(NodeLabel(node), ": the name has characters that names may not have"),
                    "names match [A-Za-z0-9.][A-Za-z0-9_./-]*");
    return;
  }
  const NodeId other = graph.Find(node.name);
  if (other == id) return;
  findings_.Error("duplicate name", graph, id,
                  absl::StrCat(NodeLabel(node), ": the name is taken by another node (", graph.node(other).op, ")",
                               other < result_.first_new ? " that was added to the session before" : ""),
                  "names must be unique");
}

void GraphAssembler::AddInputs(const RawNode& raw, NodeId id) {
  if (static_cast<int64_t>(raw.inputs.size()) > options_.limits.max_inputs_per_node) {
    findings_.Error("too many inputs", result_.graph, id,
                    absl::StrCat(NodeLabel(result_.graph.node(id)), " has ", raw.inputs.size(),
                                 " inputs, more than the limit of ", options_.limits.max_inputs_per_node),
                    "", absl::StatusCode::kResourceExhausted);
    result_.faulty.insert(id);
    return;
  }
  result_.graph.mutable_node(id).inputs.reserve(raw.inputs.size());
  for (const absl::string_view text : raw.inputs) AddInput(text, id);
}

void GraphAssembler::AddInput(absl::string_view text, NodeId id) {
  Node& node = result_.graph.mutable_node(id);
  const int32_t index = static_cast<int32_t>(node.inputs.size());
  const InputText input = ParseInputText(text);
  const bool is_control = input.port == kControlPort;
  if (input.fault != nullptr) {
    findings_.Error("bad input", result_.graph, id,
                    absl::StrCat(NodeLabel(node), ": input ", index, " is written ", Quoted(text), ": ", input.fault),
                    "write NODE, NODE:PORT or ^NODE");
  } else if (!is_control && index > node.num_data_inputs) {
    findings_.Error("input order", result_.graph, id,
                    absl::StrCat(NodeLabel(node), ": the data input ", Quoted(text), " stands after a control input"),
                    "list control inputs last");
    result_.faulty.insert(id);
  }
  if (!is_control) ++node.num_data_inputs;
  NodeId producer = input.fault == nullptr ? result_.graph.Find(input.name) : kNoNode;
  if (producer == kNoNode && input.fault == nullptr) {
    pending_.push_back({id, index, pending_names_.size(), input.name.size()});
    pending_names_.append(input.name.data(), input.name.size());
  }
  node.inputs.push_back({producer, input.port});
}

void GraphAssembler::AddAttrs(const RawNode& raw, NodeId id) {
  if (raw.attrs.empty()) return;
  sorted_attrs_.clear();
  for (const RawNode::RawAttr& attr : raw.attrs) sorted_attrs_.push_back(&attr);
  std::stable_sort(sorted_attrs_.begin(), sorted_attrs_.end(),
                   [](const auto* a, const auto* b) { return a->name < b->name; });

  Node& node = result_.graph.mutable_node(id);
  std::vector<const RawNode::RawAttr*> undeclared;
  node.attrs.Reserve(std::min<size_t>(sorted_attrs_.size(), 64));
  for (size_t i = 0; i < sorted_attrs_.size(); ++i) {
    const RawNode::RawAttr& attr = *sorted_attrs_[i];
    if (i + 1 < sorted_attrs_.size() && sorted_attrs_[i + 1]->name == attr.name) continue;  // the last one counts
    if (attr.name.empty()) continue;  // an entry without a key, which the encoding allows, says nothing
    const bool is_hint = absl::StartsWith(attr.name, "_");
    if (!IsPrintable(attr.name)) {
      findings_.Error("bad attribute", result_.graph, id,
                      absl::StrCat(NodeLabel(node), ": an attribute has the name ", Quoted(attr.name),
                                   ", which is not printable ASCII text"));
    } else if (node.schema != nullptr && !is_hint && node.schema->FindAttr(attr.name) == nullptr) {
      undeclared.push_back(&attr);
    } else if (attr.value.ok()) {
      node.attrs.Set(attr.name, *attr.value);
    } else if (!is_hint) {
      result_.faulty.insert(id);
      findings_.Error(
          "bad attribute", result_.graph, id,
          absl::StrCat(NodeLabel(node), ": attribute ", Quoted(attr.name), ": ", attr.value.status().message()), "",
          attr.value.status().code());
    }
  }
  if (!undeclared.empty()) ReportUndeclared(id, undeclared);
  ShareAttrs(node);
}

// Most nodes of an op have the same attributes: they are given those of the one before them.
void GraphAssembler::ShareAttrs(Node& node) {
  if (!std::all_of(node.attrs.begin(), node.attrs.end(), [](const auto& attr) { return IsSmallAttr(attr.second); })) return;
  AttrMap& last = last_attrs_[node.op];
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first && AttrEquals(a.second, b.second); };
  if (std::equal(node.attrs.begin(), node.attrs.end(), last.begin(), last.end(), same)) node.attrs = last;
  else last = node.attrs;
}

// L13: such a graph loads, the attributes are left out.
void GraphAssembler::ReportUndeclared(NodeId id, const std::vector<const RawNode::RawAttr*>& undeclared) {
  constexpr size_t kMostNamed = 5;
  bool all_defaults = true;
  std::vector<std::string> named;
  for (const RawNode::RawAttr* attr : undeclared) {
    all_defaults = all_defaults && attr->value.ok() && LooksLikeDefault(*attr->value);
    if (named.size() < kMostNamed) {
      named.push_back(absl::StrCat(attr->name.substr(0, 80), "=",
                                   attr->value.ok() ? AttrToString(*attr->value, 40) : "<undecodable>"));
    }
  }
  if (undeclared.size() > kMostNamed) named.push_back(absl::StrCat(undeclared.size() - kMostNamed, " more"));
  std::string message =
      absl::StrCat(NodeLabel(result_.graph.node(id)), ": the op declares no attribute ", absl::StrJoin(named, ", "),
                   all_defaults ? "; it looks like a newer writer's default and was left out" : "; it was ignored");
  if (all_defaults) {
    findings_.Note("unknown attribute", result_.graph, id, std::move(message));
  } else {
    findings_.Warning("unknown attribute", result_.graph, id, std::move(message),
                      "check that the model does not depend on it");
  }
}

void GraphAssembler::OnFunction(std::shared_ptr<const FunctionDef> function) {
  if (functions_ == nullptr) functions_ = std::make_shared<FunctionLibrary>();
  if (const absl::Status status = functions_->Add(std::move(function)); !status.ok()) {
    findings_.FileError("bad function", std::string(status.message()));
  }
}

void GraphAssembler::OnGradient(absl::string_view function, absl::string_view gradient) {
  if (functions_ == nullptr) functions_ = std::make_shared<FunctionLibrary>();
  if (const absl::Status status = functions_->SetGradient(function, gradient); !status.ok()) {
    findings_.FileError("bad function", std::string(status.message()));
  }
}

void GraphAssembler::OnVersions(const GraphVersions& versions) { versions_ = versions; }

GraphAssembler::Result GraphAssembler::Finish() {
  ResolvePending();
  DropRepeatedControlInputs();
  MergeVersions();
  if (functions_ != nullptr) result_.graph.functions = functions_;
  return std::move(result_);
}

void GraphAssembler::ResolvePending() {
  Graph& graph = result_.graph;
  for (const PendingInput& pending : pending_) {
    const absl::string_view name = absl::string_view(pending_names_).substr(pending.name_begin, pending.name_size);
    Endpoint& input = graph.mutable_node(pending.node).inputs[static_cast<size_t>(pending.input)];
    input.node = graph.Find(name);
    if (input.node != kNoNode) continue;
    const bool suggest = findings_.count("missing input") < kMostSuggestions;
    findings_.Error(
        "missing input", graph, pending.node,
        absl::StrCat(NodeLabel(graph.node(pending.node)), ": ", input.is_control() ? "control input " : "input ",
                     pending.input, " comes from ", Quoted(name), ", which is not in the graph",
                     suggest ? DidYouMean(graph.NearestNames(name)) : ""));
  }
}

void GraphAssembler::DropRepeatedControlInputs() {
  for (NodeId id = result_.first_new; id < result_.graph.num_nodes(); ++id) {
    Node& node = result_.graph.mutable_node(id);
    const size_t data = static_cast<size_t>(node.num_data_inputs);
    // After misplaced control inputs, which have been reported, the count says nothing about positions.
    if (node.inputs.size() > data + 1 && !result_.faulty.contains(id)) EraseRepeated(&node.inputs, data);
  }
}

// D2: an extension keeps the producer version; the other fields add up.
void GraphAssembler::MergeVersions() {
  GraphVersions& versions = result_.graph.versions;
  if (result_.first_new == 0) {
    versions = versions_;
    return;
  }
  if (versions_.producer != versions.producer) {
    findings_.FileError("version",
                        absl::StrCat("the extension was made by producer version ", versions_.producer,
                                     ", the session's graph by version ", versions.producer),
                        "extend a graph only with graphs of the same producer version");
  }
  versions.min_consumer = std::max(versions.min_consumer, versions_.min_consumer);
  for (const int consumer : versions_.bad_consumers) {
    if (std::find(versions.bad_consumers.begin(), versions.bad_consumers.end(), consumer) ==
        versions.bad_consumers.end()) {
      versions.bad_consumers.push_back(consumer);
    }
  }
}

}  // namespace thalweg
