#include "thalweg/graph/lowering/function_body.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "thalweg/function.pb.h"
#include "thalweg/graph/arg_types.h"
#include "thalweg/graph/attr_decode.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/functions.h"
#include "thalweg/graph/graph_reader.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/validate.h"
#include "thalweg/op_def.pb.h"

namespace thalweg {
namespace {

// More tensors than this at one node or function are an attack.
constexpr int64_t kMostInputs = 65536 * 4;

bool IsV1ControlFlow(const Node& node) {
  if (node.schema == nullptr) return false;
  const OpRole role = node.schema->role;
  return role == OpRole::kSwitch || role == OpRole::kMerge || role == OpRole::kEnter || role == OpRole::kExit ||
         role == OpRole::kNextIteration;
}

// Functions as attributes of functions, nested by a body that calls itself with more and more of them, are refused here.
class NestingCheck {
 public:
  bool Allows(const Attr& attr, int depth = 0) {
    if (const auto* function = std::get_if<std::shared_ptr<const FunctionRef>>(&attr)) return AllowsFunction(**function, depth);
    const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&attr);
    const auto* functions = list == nullptr ? nullptr : std::get_if<std::vector<FunctionRef>>(&(*list)->values);
    if (functions == nullptr) return true;
    return std::all_of(functions->begin(), functions->end(), [&](const FunctionRef& f) { return AllowsFunction(f, depth); });
  }

 private:
  bool AllowsFunction(const FunctionRef& function, int depth) {
    constexpr int kDeepest = 100;
    constexpr int kMostFunctions = 10'000;
    if (depth > kDeepest || ++functions_ > kMostFunctions) return false;
    return std::all_of(function.attrs->begin(), function.attrs->end(), [&](const auto& attr) { return Allows(attr.second, depth + 1); });
  }

  int functions_ = 0;
};

// Puts the values of a call's attributes where the body holds placeholders.
class AttrSubstitution {
 public:
  explicit AttrSubstitution(const AttrMap& values) : values_(values) {}

  absl::StatusOr<Attr> Apply(const Attr& attr) const {
    if (const auto* placeholder = std::get_if<AttrPlaceholder>(&attr)) return Value(placeholder->name);
    if (const auto* function = std::get_if<std::shared_ptr<const FunctionRef>>(&attr)) {
      THALWEG_ASSIGN_OR_RETURN(FunctionRef substituted, InFunction(**function));
      return Attr(std::make_shared<const FunctionRef>(std::move(substituted)));
    }
    const auto* list = std::get_if<std::shared_ptr<const AttrList>>(&attr);
    const auto* functions = list == nullptr ? nullptr : std::get_if<std::vector<FunctionRef>>(&(*list)->values);
    if (functions == nullptr) return attr;
    std::vector<FunctionRef> substituted;
    for (const FunctionRef& function : *functions) {
      THALWEG_ASSIGN_OR_RETURN(FunctionRef one, InFunction(function));
      substituted.push_back(std::move(one));
    }
    return MakeListAttr(std::move(substituted));
  }

 private:
  absl::StatusOr<Attr> Value(const std::string& name) const {
    if (const Attr* value = values_.Find(name)) return *value;
    return absl::InvalidArgumentError(absl::StrCat("the call gives no value for the attribute '", name, "'"));
  }

  absl::StatusOr<FunctionRef> InFunction(const FunctionRef& function) const {
    auto attrs = std::make_shared<AttrMap>();
    for (const auto& [name, value] : *function.attrs) {
      THALWEG_ASSIGN_OR_RETURN(Attr substituted, Apply(value));
      attrs->Set(name, std::move(substituted));
    }
    return FunctionRef{function.name, std::move(attrs)};
  }

  const AttrMap& values_;
};

class Instantiation {
 public:
  Instantiation(const Graph& context, const FunctionRef& function, const FunctionDef& def, const OpSchema& signature)
      : function_(function), def_(def), signature_(signature), body_(std::make_shared<FunctionBody>()) {
    body_->graph.versions = context.versions;
    body_->graph.functions = context.functions;
    body_->graph.schemas = context.schemas;
  }

  absl::StatusOr<std::shared_ptr<const FunctionBody>> Run() {
    THALWEG_RETURN_IF_ERROR(ResolveAttrs());
    THALWEG_RETURN_IF_ERROR(AddArgs());
    for (const auto& node : def_.node_def()) THALWEG_RETURN_IF_ERROR(AddBodyNode(node));
    for (int i = 0; i < def_.node_def_size(); ++i) AddInputs(def_.node_def(i), first_node_ + i);
    KeepKnownColocation();
    Validate();
    THALWEG_RETURN_IF_ERROR(StatusOfFindings(findings_.Take()));
    THALWEG_RETURN_IF_ERROR(AddResults());
    THALWEG_RETURN_IF_ERROR(AddControlResults());
    Analyze();
    return std::shared_ptr<const FunctionBody>(std::move(body_));
  }

 private:
  // A name that inputs may start with: an argument with its tensors, or a node.
  struct Named {
    NodeId first = kNoNode;
    int count = 1;
    bool is_arg = false;
  };

  Graph& graph() { return body_->graph; }

  absl::Status ResolveAttrs() {
    for (const AttrDecl& decl : signature_.attrs) {
      const Attr* value = function_.attrs->Find(decl.name);
      if (value == nullptr && decl.has_default) value = &decl.default_value;
      if (value == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("the call gives no value for the attribute '", decl.name, "' (", decl.KindName(), ")"));
      }
      THALWEG_RETURN_IF_ERROR(CheckAttr(decl, *value));
      values_.Set(decl.name, *value);
    }
    body_->function = {function_.name, std::make_shared<const AttrMap>(values_)};
    return absl::OkStatus();
  }

  absl::Status AddName(const std::string& name, Named named) {
    if (name.empty()) return absl::InvalidArgumentError("an argument or node of the body has no name");
    if (names_.emplace(name, named).second) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the name ", Quoted(name), " is there twice"));
  }

  NodeId AddNode(Node node) {
    node.attrs.Set(kFunctionNodeAttr, absl::StrCat(function_.name, "/", std::string(node.name)));
    node.origin = graph().num_nodes();
    return graph().AddNode(std::move(node));
  }

  // What the file says of an argument's shape (`_output_shapes`) is left out: nothing checks that callers keep to it.
  absl::Status AddArgs() {
    for (size_t i = 0; i < signature_.inputs.size(); ++i) {
      const ArgDecl& arg = signature_.inputs[i];
      std::vector<DType> types;
      THALWEG_RETURN_IF_ERROR(AppendArgTypes(NodeAttrs(&values_, &signature_), arg, &types));
      THALWEG_RETURN_IF_ERROR(AddName(arg.name, {graph().num_nodes(), static_cast<int>(types.size()), true}));
      const bool is_list = !arg.number_attr.empty() || !arg.type_list_attr.empty();
      for (size_t k = 0; k < types.size(); ++k) {
        if (static_cast<int64_t>(body_->args.size()) >= kMostInputs) {
          return absl::ResourceExhaustedError(absl::StrCat("the function has more than ", kMostInputs, " arguments"));
        }
        THALWEG_ASSIGN_OR_RETURN(Node node, NewInternalNode(graph(), "_Arg"));
        const std::string name = is_list ? absl::StrCat(arg.name, "_", k) : arg.name;
        node.name = name;
        node.attrs.Set("index", static_cast<int64_t>(body_->args.size()));
        node.attrs.Set("T", types[k]);
        const auto alias = def_.resource_arg_unique_id().find(static_cast<uint32_t>(i));
        if (alias != def_.resource_arg_unique_id().end()) node.attrs.Set("_resource_arg_unique_id", int64_t{alias->second});
        node.output_types = {types[k]};
        body_->args.push_back(AddNode(std::move(node)));
      }
    }
    first_node_ = graph().num_nodes();
    return absl::OkStatus();
  }

  absl::Status AddBodyNode(const NodeDef& message) {
    THALWEG_RETURN_IF_ERROR(AddName(message.name(), {graph().num_nodes()}));
    RawNode raw;
    RawNodeOfMessage(message, &raw);
    Node node;
    node.name = raw.name;
    node.op = raw.op;
    node.requested_device = raw.device;
    node.schema = graph().schemas->Find(raw.op);
    if (IsEngineOp(raw.op)) {
      return WithNode(absl::InvalidArgumentError("only the engine makes nodes of this op"), node);
    }
    for (const RawNode::RawAttr& attr : raw.attrs) {
      THALWEG_RETURN_IF_ERROR(WithNode(AddAttr(attr, node), node));
    }
    NameState(node);
    AddNode(std::move(node));
    return absl::OkStatus();
  }

  absl::Status AddAttr(const RawNode::RawAttr& attr, Node& node) {
    const bool is_hint = absl::StartsWith(attr.name, "_");
    if (!is_hint && node.schema != nullptr && node.schema->FindAttr(attr.name) == nullptr) return absl::OkStatus();  // L13
    absl::StatusOr<Attr> value = attr.value;
    if (value.ok()) value = AttrSubstitution(values_).Apply(*attr.value);
    if (value.ok() && !NestingCheck().Allows(*value)) {
      value = absl::ResourceExhaustedError("it names functions with functions as attributes, nested too deep or too many");
    }
    if (!value.ok() && is_hint) return absl::OkStatus();
    if (!value.ok()) {
      return absl::Status(value.status().code(), absl::StrCat("attribute ", Quoted(attr.name), ": ", value.status().message()));
    }
    node.attrs.Set(attr.name, *std::move(value));
    return absl::OkStatus();
  }

  // A resource without a name has that of its node; every copy of the body means the same resource.
  static void NameState(Node& node) {
    if (node.schema == nullptr || node.schema->FindAttr("shared_name") == nullptr) return;
    if (node.node_attrs().GetOr<std::string>("shared_name", "").empty()) node.attrs.Set("shared_name", std::string(node.name));
  }

  static absl::Status WithNode(const absl::Status& status, const Node& node) {
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat(NodeLabel(node), ": ", status.message()));
  }

  void AddInputs(const NodeDef& message, NodeId id) {
    std::vector<Endpoint> data, control;
    for (absl::string_view text : std::vector<absl::string_view>(message.input().begin(), message.input().end())) {
      absl::Status status;
      if (absl::ConsumePrefix(&text, "^")) {
        status = ResolveControl(text, &control);
      } else if (control.empty()) {
        status = ResolveData(text, &data);
      } else {
        status = absl::InvalidArgumentError(absl::StrCat("the data input ", Quoted(text), " stands after a control input"));
      }
      if (status.ok()) continue;
      faulty_.insert(id);
      // That the producer is unusable is its own fault, which validation reports.
      if (status.code() == absl::StatusCode::kUnavailable) return;
      const Node& node = graph().node(id);
      findings_.Error("missing input", graph(), id, absl::StrCat(NodeLabel(node), ": ", status.message()), "", status.code());
      return;
    }
    std::sort(control.begin(), control.end());
    control.erase(std::unique(control.begin(), control.end()), control.end());
    Node& node = graph().mutable_node(id);
    node.num_data_inputs = static_cast<int32_t>(data.size());
    node.inputs.assign(data.begin(), data.end());
    node.inputs.insert(node.inputs.end(), control.begin(), control.end());
  }

  absl::Status ResolveControl(absl::string_view name, std::vector<Endpoint>* out) const {
    const auto found = names_.find(name);
    if (found == names_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("the control input ", Quoted(name), " names no node of the body"));
    }
    const Named& named = found->second;
    for (int k = 0; k < named.count; ++k) out->push_back({named.first + k, kControlPort});
    return absl::OkStatus();
  }

  // "arg", "arg:k", "node:out" or "node:out:k"; what names a list gives all of its tensors.
  absl::Status ResolveData(absl::string_view text, std::vector<Endpoint>* out) {
    const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
    const auto found = names_.find(parts[0]);
    if (found == names_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("the input ", Quoted(text), " names no argument and no node of the body"));
    }
    const Named& named = found->second;
    const size_t most_parts = named.is_arg ? 2 : 3;
    if (parts.size() > most_parts || (!named.is_arg && parts.size() < 2)) {
      return absl::InvalidArgumentError(absl::StrCat("the input ", Quoted(text), " is malformed: write ARG, ARG:INDEX, NODE:OUTPUT or NODE:OUTPUT:INDEX"));
    }
    ArgRange range{0, named.count};
    if (!named.is_arg) {
      THALWEG_ASSIGN_OR_RETURN(range, OutputOf(named.first, parts[1]));
    }
    if (parts.size() == most_parts) {
      int index = 0;
      if (!absl::SimpleAtoi(parts.back(), &index) || index < 0 || index >= range.count) {
        return absl::InvalidArgumentError(absl::StrCat("the input ", Quoted(text), " asks for element ", parts.back(), " of ", range.count));
      }
      range = {range.begin + index, 1};
    }
    if (static_cast<int64_t>(out->size()) + range.count > kMostInputs) {
      return absl::ResourceExhaustedError(absl::StrCat("the node has more than ", kMostInputs, " inputs"));
    }
    for (int k = range.begin; k < range.begin + range.count; ++k) {
      out->push_back(named.is_arg ? Endpoint{named.first + k, 0} : Endpoint{named.first, k});
    }
    return absl::OkStatus();
  }

  const OpSchema* SchemaOf(const Node& node) const {
    return node.schema != nullptr ? node.schema : body_->graph.functions->Signature(node.op);
  }

  // Unavailable if the node's op or attributes are wrong, so that its outputs are not known.
  absl::StatusOr<ArgRange> OutputOf(NodeId id, absl::string_view output) {
    const Node& node = graph().node(id);
    const OpSchema* schema = SchemaOf(node);
    if (schema == nullptr) return absl::UnavailableError(absl::StrCat(NodeLabel(node), " has no declaration"));
    auto [ranges, is_new] = ranges_.try_emplace(id);
    if (is_new) {
      std::vector<DType> types;
      for (const ArgDecl& arg : schema->outputs) {
        const int begin = static_cast<int>(types.size());
        if (!AppendArgTypes(NodeAttrs(&node.attrs, schema), arg, &types).ok()) {
          ranges_.erase(id);
          return absl::UnavailableError(absl::StrCat(NodeLabel(node), " has faulty attributes"));
        }
        ranges->second.emplace(arg.name, ArgRange{begin, static_cast<int>(types.size()) - begin});
      }
    }
    const auto found = ranges->second.find(output);
    if (found != ranges->second.end()) return found->second;
    return absl::InvalidArgumentError(absl::StrCat(NodeLabel(node), " has no output ", Quoted(output)));
  }

  // Nobody promises that colocation in a body names nodes that are there.
  void KeepKnownColocation() {
    for (NodeId id = first_node_; id < graph().num_nodes(); ++id) {
      Node& node = graph().mutable_node(id);
      const Attr* classes = node.attrs.Find("_class");
      if (classes == nullptr) continue;
      const auto* list = std::get_if<std::shared_ptr<const AttrList>>(classes);
      const auto* texts = list == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&(*list)->values);
      std::vector<std::string> kept;
      for (absl::string_view text : texts == nullptr ? std::vector<std::string>() : *texts) {
        absl::string_view other = text;
        if (absl::ConsumePrefix(&other, "loc:@") && graph().Find(other) != kNoNode) kept.emplace_back(text);
      }
      if (kept.empty()) node.attrs.Erase("_class");
      else node.attrs.Set("_class", MakeListAttr(std::move(kept)));
    }
  }

  void Validate() {
    ValidateInput input;
    input.schemas = graph().schemas;
    input.first = first_node_;
    input.faulty = &faulty_;
    ValidateGraph(input, graph(), findings_);
  }

  absl::Status AddResults() {
    size_t named = 0;
    for (const ArgDecl& result : signature_.outputs) {
      const auto text = def_.ret().find(result.name);
      if (text == def_.ret().end()) {
        return absl::InvalidArgumentError(absl::StrCat("nothing is returned as its result '", result.name, "'"));
      }
      ++named;
      std::vector<Endpoint> values;
      std::vector<DType> types;
      absl::Status status = ResolveData(text->second, &values);
      if (status.ok()) status = AppendArgTypes(NodeAttrs(&values_, &signature_), result, &types);
      if (status.ok() && values.size() != types.size()) {
        status = absl::InvalidArgumentError(absl::StrCat("it has ", types.size(), " tensors but ", Quoted(text->second), " gives ", values.size()));
      }
      for (size_t k = 0; status.ok() && k < values.size(); ++k) status = AddResult(result.name, values[k], types[k]);
      if (!status.ok()) return absl::Status(status.code(), absl::StrCat("result '", result.name, "': ", status.message()));
    }
    if (named == def_.ret().size()) return absl::OkStatus();
    for (const auto& [name, text] : def_.ret()) {
      const auto is_declared = [&, result = absl::string_view(name)](const ArgDecl& arg) { return arg.name == result; };
      if (std::none_of(signature_.outputs.begin(), signature_.outputs.end(), is_declared)) {
        return absl::InvalidArgumentError(absl::StrCat(Quoted(text), " is returned as ", Quoted(name), ", which the signature does not declare"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddResult(const std::string& name, Endpoint value, DType type) {
    const DType given = graph().node(value.node).output_types[value.port];
    if (given != type && RemoveRef(given) != type) {
      return absl::InvalidArgumentError(absl::StrCat("it is declared as ", DTypeName(type), " but ", graph().EndpointName(value), " is ", DTypeName(given)));
    }
    THALWEG_ASSIGN_OR_RETURN(Node node, NewInternalNode(graph(), "_Retval"));
    const std::string node_name = absl::StrCat("_retval_", name, "_", body_->results.size());
    node.name = node_name;
    node.attrs.Set("index", static_cast<int64_t>(body_->results.size()));
    node.attrs.Set("T", RemoveRef(type));
    node.inputs = {value};
    node.num_data_inputs = 1;
    body_->results.push_back(AddNode(std::move(node)));
    return absl::OkStatus();
  }

  absl::Status AddControlResults() {
    for (const std::string& output : def_.signature().control_output()) {
      const auto target = def_.control_ret().find(output);
      if (target == def_.control_ret().end()) {
        return absl::InvalidArgumentError(absl::StrCat("nothing is returned as its control result ", Quoted(output)));
      }
      const auto named = names_.find(target->second);
      if (named == names_.end() || named->second.is_arg) {
        return absl::InvalidArgumentError(absl::StrCat("the control result ", Quoted(output), " is ", Quoted(target->second), ", which is no node of the body"));
      }
      body_->control_results.push_back(named->second.first);
    }
    return absl::OkStatus();
  }

  bool IsStateful(const Node& node) const {
    if (IsStepBoundary(node)) return false;
    const OpSchema* schema = SchemaOf(node);
    return schema != nullptr && schema->stateful;
  }

  // Deadness and frames spread forwards. A node is visited again when more of its inputs turn out that way, so at most
  // twice per property.
  void Analyze() {
    const Graph& graph = body_->graph;
    body_->may_be_dead.assign(graph.num_nodes(), false);
    body_->in_frame.assign(graph.num_nodes(), false);
    for (NodeId id = 0; id < graph.num_nodes(); ++id) {
      if (IsStateful(graph.node(id))) body_->stateful.push_back(id);
      body_->has_v1_control_flow |= IsV1ControlFlow(graph.node(id));
    }
    if (!body_->has_v1_control_flow) return;
    const Consumers consumers = graph.BuildConsumers();
    std::vector<NodeId> work;
    for (NodeId id = 0; id < graph.num_nodes(); ++id) {
      const OpSchema* schema = graph.node(id).schema;
      if (schema != nullptr && (schema->role == OpRole::kSwitch || schema->role == OpRole::kEnter)) work.push_back(id);
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      const Node& node = graph.node(id);
      const OpRole role = node.schema == nullptr ? OpRole::kNormal : node.schema->role;
      const bool frame = role == OpRole::kEnter || (body_->in_frame[id] && role != OpRole::kExit);
      for (const Consumers::Use& use : consumers.of(id)) {
        const Node& reader = graph.node(use.node);
        const bool chooses = reader.schema != nullptr && (reader.schema->role == OpRole::kMerge || reader.schema->role == OpRole::kExit ||
                                                          reader.schema->role == OpRole::kControlTrigger);
        const bool dead = !chooses && (body_->may_be_dead[id] || (role == OpRole::kSwitch && use.port != kControlPort));
        if ((!dead || body_->may_be_dead[use.node]) && (!frame || body_->in_frame[use.node])) continue;
        if (dead) body_->may_be_dead[use.node] = true;
        if (frame) body_->in_frame[use.node] = true;
        work.push_back(use.node);
      }
    }
  }

  const FunctionRef& function_;
  const FunctionDef& def_;
  const OpSchema& signature_;
  std::shared_ptr<FunctionBody> body_;
  AttrMap values_;
  FindingList findings_;
  absl::flat_hash_set<NodeId> faulty_;
  absl::flat_hash_map<std::string, Named> names_;
  absl::flat_hash_map<NodeId, absl::flat_hash_map<std::string, ArgRange>> ranges_;  // of the outputs of nodes
  NodeId first_node_ = 0;
};

}  // namespace

std::vector<bool> FunctionBody::Needed(Effects which) const {
  std::vector<bool> needed(graph.num_nodes(), false);
  std::vector<NodeId> work;
  const auto need = [&](NodeId id) {
    if (needed[id]) return;
    needed[id] = true;
    work.push_back(id);
  };
  for (const NodeId id : results) need(id);
  for (const NodeId id : effects(which)) need(id);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    for (const Endpoint input : graph.node(id).inputs) need(input.node);
  }
  return needed;
}

bool FunctionBody::CanInline(Effects which) const {
  if (!has_v1_control_flow) return true;
  const auto is_dead = [this](NodeId id) { return may_be_dead[id]; };
  const auto is_hidden = [this](NodeId id) { return may_be_dead[id] || in_frame[id]; };
  return std::none_of(results.begin(), results.end(), is_dead) &&
         std::none_of(effects(which).begin(), effects(which).end(), is_hidden);
}

absl::StatusOr<std::shared_ptr<const FunctionBody>> InstantiateFunction(const Graph& context, const FunctionRef& function) {
  const FunctionDef* def = context.functions == nullptr ? nullptr : context.functions->Find(function.name);
  if (def == nullptr) return absl::NotFoundError(absl::StrCat("the library has no function ", Quoted(function.name)));
  absl::StatusOr<std::shared_ptr<const FunctionBody>> body =
      Instantiation(context, function, *def, *context.functions->Signature(function.name)).Run();
  if (body.ok()) return body;
  return absl::Status(body.status().code(), absl::StrCat("function ", Quoted(function.name), ": ", body.status().message()));
}

absl::StatusOr<std::shared_ptr<const FunctionBody>> FunctionBodies::Get(const FunctionRef& function) {
  const OpSchema* signature = context_.functions == nullptr ? nullptr : context_.functions->Signature(function.name);
  auto declared = std::make_shared<AttrMap>();
  for (const auto& [name, value] : *function.attrs) {
    if (signature != nullptr && signature->FindAttr(name) != nullptr) declared->Set(name, value);
  }
  FunctionRef wanted{function.name, std::move(declared)};
  std::vector<Entry>& entries = bodies_[HashOf(wanted)];
  for (const Entry& entry : entries) {
    if (entry.function == wanted) return entry.body;
  }
  ++size_;
  absl::StatusOr<std::shared_ptr<const FunctionBody>> body = InstantiateFunction(context_, wanted);
  entries.push_back({std::move(wanted), body});
  return body;
}

bool operator==(const FunctionRef& a, const FunctionRef& b) {
  if (a.name != b.name || a.attrs->size() != b.attrs->size()) return false;
  return std::equal(a.attrs->begin(), a.attrs->end(), b.attrs->begin(),
                    [](const auto& x, const auto& y) { return x.first == y.first && AttrEquals(x.second, y.second); });
}

uint64_t HashOf(const FunctionRef& function) {
  uint64_t hash = absl::HashOf(function.name);
  for (const auto& [name, value] : *function.attrs) hash = absl::HashOf(hash, name, AttrHash(value));
  return hash;
}

bool TakesFunctions(const OpSchema& schema) {
  return std::any_of(schema.attrs.begin(), schema.attrs.end(), [](const AttrDecl& attr) { return attr.kind == AttrKind::kFunc; });
}

std::vector<FunctionRef> CalledFunctions(const Node& node) {
  std::vector<FunctionRef> called;
  if (node.schema == nullptr) {
    called.push_back({std::string(node.op), std::make_shared<const AttrMap>(node.attrs)});
    return called;
  }
  for (const AttrDecl& decl : node.schema->attrs) {
    if (decl.kind != AttrKind::kFunc) continue;
    const Attr* value = node.attrs.Find(decl.name);
    if (value == nullptr) continue;
    if (const auto* function = std::get_if<std::shared_ptr<const FunctionRef>>(value)) called.push_back(**function);
    const auto* list = std::get_if<std::shared_ptr<const AttrList>>(value);
    const auto* functions = list == nullptr ? nullptr : std::get_if<std::vector<FunctionRef>>(&(*list)->values);
    if (functions != nullptr) called.insert(called.end(), functions->begin(), functions->end());
  }
  return called;
}

}  // namespace thalweg
