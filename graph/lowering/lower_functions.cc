#include "thalweg/graph/lowering/lower_functions.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/findings.h"
#include "thalweg/graph/functions.h"
#include "thalweg/graph/internal_nodes.h"
#include "thalweg/graph/lowering/call_check.h"
#include "thalweg/graph/lowering/lowered_names.h"
#include "thalweg/graph/passes/rewrite.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {
namespace {

enum class Form { kNone, kDirectCall, kCall, kPlainCall, kRemoteCall, kIf, kCase, kWhile, kGradient };

Form FormOfOp(absl::string_view op) {
  static const auto& forms = *new absl::flat_hash_map<absl::string_view, Form>{
      {"PartitionedCall", Form::kCall}, {"StatefulPartitionedCall", Form::kCall}, {"_Call", Form::kPlainCall},
      {"RemoteCall", Form::kRemoteCall}, {"If", Form::kIf},     {"StatelessIf", Form::kIf},
      {"Case", Form::kCase},            {"StatelessCase", Form::kCase},           {"While", Form::kWhile},
      {"StatelessWhile", Form::kWhile}, {"SymbolicGradient", Form::kGradient}};
  const auto found = forms.find(op);
  return found == forms.end() ? Form::kNone : found->second;
}

Form FormOf(const Node& node) {
  if (node.schema == nullptr) return Form::kDirectCall;
  return TakesFunctions(*node.schema) ? FormOfOp(node.op) : Form::kNone;  // few ops do; the rest need no look-up
}

bool IsMarked(const Node& node) {
  const Attr* mark = node.attrs.Find("_lower_using_switch_merge");
  const auto* value = mark == nullptr ? nullptr : std::get_if<bool>(mark);
  return value != nullptr && *value;
}

Endpoint ControlFrom(NodeId node) { return {node, kControlPort}; }
bool Exists(Endpoint e) { return e.node != kNoNode; }
constexpr Endpoint kNothing{kNoNode, kControlPort};

// What is known of a node of functional form beyond what it says itself.
struct Site {
  int chain = -1;           // the calls around it: index into Lowerer::chains_
  Endpoint root = kNothing; // what nodes of its bodies that have no inputs wait for, so that they share its fate and frame
  Effects effects = Effects::kAllStateful;
  bool whole = true;        // behaves as one node: starts and ends with all of its parts
  bool among_v1 = false;    // its inputs may be dead one by one
  bool on_one_device = false;  // all of its body, whatever devices that asks for
  // By data input: present although the call is not to run (a loop invariant after the last iteration). Empty: none is.
  std::vector<bool> ungated;
};

// The calls that a node was brought in by, innermost first.
struct Chain {
  int parent = -1;
  const FunctionBody* body = nullptr;
  int depth = 0;
};

struct Replacement {
  std::vector<Endpoint> outputs;
  Endpoint done = kNothing;
};

class Lowerer {
 public:
  Lowerer(PrunedGraph& step, const LoweringOptions& options)
      : step_(step), graph_(step.graph), options_(options), bodies_(step.graph), num_given_(step.graph.num_nodes()) {
    if (options.within != nullptr) chains_.push_back({-1, options.within, 0});
  }

  absl::Status Run() {
    bool found = false;
    for (NodeId id = 0; id < num_given_; ++id) {
      const Node& node = graph_.node(id);
      if (node.removed) continue;
      found |= FormOf(node) != Form::kNone;
      const OpRole role = node.schema == nullptr ? OpRole::kNormal : node.schema->role;
      has_v1_ |= role == OpRole::kSwitch || role == OpRole::kMerge || role == OpRole::kEnter;
      if (role == OpRole::kEnter) frames_.insert(node.node_attrs().GetOr<std::string>("frame_name", ""));
    }
    if (!found) return absl::OkStatus();
    THALWEG_RETURN_IF_ERROR(CheckDeclared());
    // In the order of ids: what lowering brings in is appended, and so comes up, too (E6).
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      if (!graph_.node(id).removed) LowerNode(id);
    }
    ConnectReaders();
    KeepWhatMustRun();
    RemoveUnreachable(graph_, step_.preserve);
    return absl::OkStatus();
  }

 private:
  // ---- Making nodes ----

  absl::Status CheckDeclared() const {
    for (const char* op : {"NoOp", "Identity", "ToBool", "Switch", "_SwitchN", "Merge", "Enter", "Exit", "NextIteration", "LoopCond",
                           "Const", "_Call", "_Fail", "_DeviceIndex"}) {
      THALWEG_RETURN_IF_ERROR(NewInternalNode(graph_, op).status());
    }
    return absl::OkStatus();
  }

  NodeId Add(absl::string_view op, const std::string& name, std::vector<Endpoint> data, const std::vector<Endpoint>& controls, AttrMap attrs,
             absl::string_view device) {
    Node node = *NewInternalNode(graph_, op);
    node.attrs = std::move(attrs);
    node.num_data_inputs = static_cast<int32_t>(data.size());
    node.inputs.assign(data.begin(), data.end());
    for (const Endpoint control : controls) {
      if (Exists(control)) node.inputs.push_back(control);
    }
    node.requested_device = device;
    node.origin = origin_;
    // Cannot fail: the attributes are those that the declaration asks for.
    ResolveOutputTypes(node.node_attrs(), &types_).IgnoreError();
    node.output_types.assign(types_.begin(), types_.end());
    return graph_.AddDerivedNode(name, std::move(node), kLowerFunctions);
  }

  NodeId AddTyped(absl::string_view op, const std::string& name, std::vector<Endpoint> data, const std::vector<Endpoint>& controls = {}) {
    AttrMap attrs;
    attrs.Set("T", TypeOf(data[0]));
    if (op == "Merge") attrs.Set("N", static_cast<int64_t>(data.size()));
    const std::string device(graph_.node(data[0].node).requested_device);  // E9, E18: where the value comes from
    return Add(op, name, std::move(data), controls, std::move(attrs), device);
  }

  NodeId AddNoOp(const std::string& name, const std::vector<Endpoint>& controls) { return Add("NoOp", name, {}, controls, {}, device_); }

  Endpoint AddIdentity(const std::string& name, Endpoint value, const std::vector<Endpoint>& controls) {
    return {AddTyped("Identity", name, {value}, controls), 0};
  }

  DType TypeOf(Endpoint e) const { return RemoveRef(graph_.node(e.node).output_types[e.port]); }
  bool IsReference(Endpoint e) const { return IsRef(graph_.node(e.node).output_types[e.port]); }

  // A control output that comes if, and only if, the value does: a Switch has run whichever output it gave (L1).
  Endpoint ControlOf(Endpoint value) {
    const Node& producer = graph_.node(value.node);
    if (producer.schema == nullptr || producer.schema->role != OpRole::kSwitch) return ControlFrom(value.node);
    const auto [found, is_new] = identity_of_.try_emplace(value, kNothing);
    if (is_new) {
      const Endpoint identity = AddIdentity(absl::StrCat(std::string(producer.name), "/_value_", value.port), value, {});
      identity_of_[value] = identity;
      return ControlFrom(identity.node);
    }
    return ControlFrom(found->second.node);
  }

  void AppendControlsOf(absl::Span<const Endpoint> values, std::vector<Endpoint>* controls) {
    const std::vector<Endpoint> copy(values.begin(), values.end());
    for (const Endpoint value : copy) controls->push_back(ControlOf(value));
  }

  // One endpoint that comes after all of `controls`; kNothing if there are none.
  Endpoint Join(const std::string& name, std::vector<Endpoint> controls) {
    std::sort(controls.begin(), controls.end());
    controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
    if (controls.empty()) return kNothing;
    if (controls.size() == 1) return controls[0];
    return ControlFrom(AddNoOp(name, controls));
  }

  // ---- The scan ----

  Site SiteOf(NodeId id, Form form) const {
    const auto found = sites_.find(id);
    if (found != sites_.end()) return found->second;
    Site site;
    site.chain = options_.within == nullptr ? -1 : 0;
    site.among_v1 = has_v1_;
    DescribeSite(graph_.node(id), form, &site);
    return site;
  }

  // How TensorFlow runs a node as the file has it.
  static void DescribeSite(const Node& node, Form form, Site* site) {
    const bool is_marked = (form == Form::kIf || form == Form::kCase || form == Form::kWhile) && IsMarked(node);
    site->effects = form == Form::kCall || is_marked ? Effects::kControlResults : Effects::kAllStateful;
    site->whole = !is_marked;
  }

  void LowerNode(NodeId id) {
    const Form form = FormOf(graph_.node(id));
    if (form == Form::kNone) return;
    const Site site = SiteOf(id, form);
    const Node node = graph_.node(id);  // a copy: adding nodes moves those that are there
    origin_ = node.origin;
    device_ = std::string(node.requested_device);
    if (site.whole) awaited_args_.insert(awaited_args_.end(), node.data_inputs().begin(), node.data_inputs().end());
    switch (form) {
      case Form::kNone:
        return;
      case Form::kDirectCall:
        return LowerCall(id, node, site, CalledFunctions(node)[0], 0);
      case Form::kCall:
      case Form::kPlainCall:
        return LowerCall(id, node, site, FunctionAttr(node, "f"), 0);
      case Form::kRemoteCall:
        return LowerRemoteCall(id, node, site);
      case Form::kGradient:
        return LowerGradient(id, node, site);
      case Form::kIf:
        return LowerBranches(id, node, site, {FunctionAttr(node, "else_branch"), FunctionAttr(node, "then_branch")}, {"else", "then"});
      case Form::kCase:
        return LowerCase(id, node, site);
      case Form::kWhile:
        return LowerWhile(id, node, site);
    }
  }

  static FunctionRef FunctionAttr(const Node& node, absl::string_view name) {
    return node.node_attrs().GetOr<FunctionRef>(name, FunctionRef{"", std::make_shared<const AttrMap>()});
  }

  // The node is gone; its readers will read `outputs`, its control successors follow `done`.
  void Replace(NodeId id, std::vector<Endpoint> outputs, Endpoint done, bool must_run) {
    if (!graph_.node(id).removed) graph_.RemoveNode(id);
    if (id < num_given_ && (must_run || step_.preserve.contains(id))) must_run_.push_back(done);
    replaced_[id] = {std::move(outputs), done};
  }

  // ---- Faults ----

  NodeId AddFail(const std::string& name, const absl::Status& status, absl::Span<const DType> types, const std::vector<Endpoint>& controls) {
    AttrMap attrs;
    attrs.Set("Tout", MakeListAttr(std::vector<DType>(types.begin(), types.end())));
    attrs.Set("code", static_cast<int64_t>(status.code()));
    attrs.Set("message", std::string(status.message()));
    return Add("_Fail", name, {}, controls, std::move(attrs), device_);
  }

  void Fail(NodeId id, const Node& node, const Site& site, const absl::Status& status) {
    std::vector<Endpoint> controls(node.control_inputs().begin(), node.control_inputs().end());
    AppendControlsOf(node.data_inputs(), &controls);
    if (controls.empty()) controls.push_back(site.root);
    graph_.RemoveNode(id);
    const absl::Status named(status.code(), absl::StrCat(NodeLabel(node), ": ", status.message()));
    const NodeId fail = AddFail(std::string(node.name), named, node.output_types, controls);
    Replace(id, OutputsOf(fail, node.num_outputs()), ControlFrom(fail), true);
  }

  static std::vector<Endpoint> OutputsOf(NodeId node, int count) {
    std::vector<Endpoint> outputs;
    for (int k = 0; k < count; ++k) outputs.push_back({node, k});
    return outputs;
  }

  // ---- Calls ----

  void LowerCall(NodeId id, const Node& node, const Site& site, const FunctionRef& function, int first_arg) {
    absl::StatusOr<std::shared_ptr<const FunctionBody>> body = bodies_.Get(function);
    if (!body.ok()) {
      // As TensorFlow says it (L4).
      const bool is_missing = body.status().code() == absl::StatusCode::kNotFound;
      return Fail(id, node, site, is_missing ? absl::InvalidArgumentError(body.status().message()) : body.status());
    }
    std::vector<DType> arg_types;
    for (const Endpoint arg : node.data_inputs().subspan(first_arg)) arg_types.push_back(TypeOf(arg));
    if (absl::Status status = CheckCall(**body, arg_types, node.output_types); !status.ok()) return Fail(id, node, site, status);
    if (!MayInline(node, site, **body)) return KeepCall(id, node, site, function, first_arg);
    Inline(id, node, site, *body, first_arg);
  }

  // All of the body runs on the target, which must be one of this session's devices. Of a target that is computed only the step knows
  // which it is: there is a call for every device then.
  void LowerRemoteCall(NodeId id, const Node& node, const Site& site) {
    const FunctionRef function = FunctionAttr(node, "f");
    if (absl::Status missing = bodies_.Get(function).status(); missing.code() == absl::StatusCode::kNotFound) return Fail(id, node, site, missing);
    const TensorLiteralPtr target = ConstValue(graph_.node(node.inputs[0].node));
    if (target != nullptr && target->strings.size() == 1) {
      device_ = target->strings[0];
      const absl::StatusOr<DeviceName> name = DeviceName::ParseLocalOrFull(device_);
      const auto matches = [&name](const DeviceName& device) { return name->Matches(device); };
      if (!name.ok() || std::none_of(options_.devices.begin(), options_.devices.end(), matches)) {
        return Fail(id, node, site, absl::InternalError(absl::StrCat("the target ", Quoted(device_), " is no device of this session")));
      }
      return LowerCall(id, node, OnOneDevice(site), function, 1);
    }
    AttrMap attrs;
    std::vector<std::string> devices;
    for (const DeviceName& device : options_.devices) devices.push_back(device.ToString());
    attrs.Set("devices", MakeListAttr(devices));
    Node choice = node;
    choice.inputs[0] = {Add("_DeviceIndex", absl::StrCat(std::string(node.name), "/_target"), {node.inputs[0]}, {}, std::move(attrs), ""), 0};
    std::vector<std::string> labels;
    for (size_t d = 0; d < devices.size(); ++d) labels.push_back(absl::StrCat("device_", d));
    LowerBranches(id, choice, site, std::vector<FunctionRef>(devices.size(), function), labels, devices);
  }

  static Site OnOneDevice(Site site) {
    site.on_one_device = true;
    return site;
  }

  bool MayInline(const Node& node, const Site& site, const FunctionBody& body) const {
    if (!body.CanInline(site.effects)) return false;
    if (site.chain >= 0 && chains_[site.chain].depth >= options_.limits.max_depth) return false;
    if (static_cast<int>(node.name.size()) > options_.limits.max_name_bytes) return false;
    if (graph_.num_nodes() - num_given_ + body.graph.num_nodes() > options_.limits.max_added_nodes) return false;
    for (int chain = site.chain; chain >= 0; chain = chains_[chain].parent) {
      if (chains_[chain].body->function == body.function) return false;  // E34
    }
    return true;
  }

  // The node stays, in the one form that the executor knows.
  void KeepCall(NodeId id, const Node& node, const Site& site, const FunctionRef& function, int first_arg) {
    Node& kept = graph_.mutable_node(id);
    Node call = *NewInternalNode(graph_, "_Call");
    kept.op = graph_.Intern("_Call");
    kept.schema = call.schema;
    kept.attrs = CallAttrs(function, {node.data_inputs().begin() + first_arg, node.data_inputs().end()}, node.output_types, site.effects);
    if (first_arg > 0) {
      kept.inputs.erase(kept.inputs.begin(), kept.inputs.begin() + first_arg);
      kept.num_data_inputs -= first_arg;
      kept.inputs.push_back(ControlFrom(node.inputs[0].node));
    }
    if (kept.inputs.empty() && Exists(site.root)) kept.inputs.push_back(site.root);
    kept.requested_device = graph_.Intern(device_);
    if (kept.inserted_by == nullptr) kept.inserted_by = kLowerFunctions;
    if (id < num_given_) must_run_.push_back(ControlFrom(id));
  }

  AttrMap CallAttrs(const FunctionRef& function, const std::vector<Endpoint>& args, absl::Span<const DType> result_types, Effects effects) const {
    std::vector<DType> arg_types;
    for (const Endpoint arg : args) arg_types.push_back(TypeOf(arg));
    AttrMap attrs;
    attrs.Set("f", std::make_shared<const FunctionRef>(function));
    attrs.Set("Tin", MakeListAttr(std::move(arg_types)));
    attrs.Set("Tout", MakeListAttr(std::vector<DType>(result_types.begin(), result_types.end())));
    attrs.Set("all_stateful", effects == Effects::kAllStateful);
    return attrs;
  }

  // Replaces the call by the nodes of the body.
  void Inline(NodeId id, const Node& node, const Site& site, const std::shared_ptr<const FunctionBody>& body, int first_arg) {
    const std::string name(node.name);
    graph_.RemoveNode(id);
    kept_bodies_.push_back(body);
    const std::vector<NodeId>& effects = body->effects(site.effects);
    const bool ends_together = site.whole && !effects.empty();
    BodyCopy copy{*body, name, {}, site.ungated, site.root, site.on_one_device};
    copy.args.assign(node.data_inputs().begin() + first_arg, node.data_inputs().end());
    copy.ungated.resize(copy.args.size(), false);

    std::vector<Endpoint> waits(node.control_inputs().begin(), node.control_inputs().end());
    if (site.whole && (ends_together || site.among_v1)) AppendControlsOf(node.data_inputs(), &waits);
    if (!waits.empty()) HoldBack(std::move(waits), &copy);
    chains_.push_back({site.chain, body.get(), site.chain < 0 ? 1 : chains_[site.chain].depth + 1});
    const std::vector<NodeId> new_ids = CopyNodes(copy, static_cast<int>(chains_.size()) - 1, body->Needed(site.effects));

    std::vector<Endpoint> outputs;
    for (size_t k = 0; k < body->results.size(); ++k) outputs.push_back(copy.Map(body->result(static_cast<int>(k)), new_ids));
    std::vector<Endpoint> after;
    for (const NodeId effect : effects) after.push_back(ControlFrom(new_ids[effect]));
    const Endpoint effects_done = Join(absl::StrCat(name, "/_effects"), std::move(after));
    for (Endpoint& output : outputs) {
      if (ends_together || IsReference(output)) output = AddIdentity(absl::StrCat(name, "/_result"), output, {effects_done});
    }
    Endpoint done = Exists(effects_done) ? effects_done : copy.root;
    if (site.whole) {
      std::vector<Endpoint> all = {effects_done};
      AppendControlsOf(outputs, &all);
      if (all.size() == 1 && !Exists(effects_done)) all.push_back(copy.root);
      done = ControlFrom(AddNoOp(name, all));
    }
    AddMissingResults(name, node, done, &outputs);
    Replace(id, std::move(outputs), done, ends_together);
  }

  // A call may declare more results than the function has; reading them is the error.
  void AddMissingResults(const std::string& name, const Node& node, Endpoint done, std::vector<Endpoint>* outputs) {
    const int given = static_cast<int>(outputs->size());
    if (given >= node.num_outputs()) {
      outputs->resize(node.num_outputs());
      return;
    }
    const absl::Span<const DType> types = absl::MakeConstSpan(node.output_types).subspan(given);
    const NodeId fail = AddFail(absl::StrCat(name, "/_missing"), TooFewResults(node, given), types, {done});
    for (const Endpoint output : OutputsOf(fail, node.num_outputs() - given)) outputs->push_back(output);
  }

  struct BodyCopy {
    const FunctionBody& body;
    std::string prefix;
    std::vector<Endpoint> args;
    std::vector<bool> ungated;
    Endpoint root = kNothing;
    bool on_one_device = false;          // whatever devices the body asks for
    std::vector<Endpoint> arg_controls;  // by argument; kNothing where no node of the body asks

    Endpoint Map(Endpoint e, const std::vector<NodeId>& new_ids) const {
      if (new_ids[e.node] != kNoNode) return {new_ids[e.node], e.port};
      const size_t arg = static_cast<size_t>(e.node - body.args.front());
      return e.is_control() ? arg_controls[arg] : args[arg];
    }
    bool IsArg(NodeId id) const { return !body.args.empty() && id >= body.args.front() && id <= body.args.back(); }
  };

  // Nothing of the body may start before `waits` (E27).
  void HoldBack(std::vector<Endpoint> waits, BodyCopy* copy) {
    copy->root = Join(absl::StrCat(copy->prefix, "/_start"), std::move(waits));
    for (Endpoint& arg : copy->args) {
      if (arg.node == copy->root.node) continue;  // comes no earlier by itself
      arg = AddIdentity(absl::StrCat(copy->prefix, "/_arg"), arg, {copy->root});
    }
    std::fill(copy->ungated.begin(), copy->ungated.end(), false);
  }

  std::vector<NodeId> CopyNodes(BodyCopy& copy, int chain, const std::vector<bool>& needed) {
    const Graph& source = copy.body.graph;
    MakeArgControls(copy, needed);
    std::vector<NodeId> new_ids(source.num_nodes(), kNoNode);
    NodeId next = graph_.num_nodes();
    for (NodeId id = 0; id < source.num_nodes(); ++id) {
      if (needed[id] && !IsStepBoundary(source.node(id))) new_ids[id] = next++;
    }
    LoweredNames names(copy.prefix, &frames_);
    for (NodeId id = 0; id < source.num_nodes(); ++id) {
      if (new_ids[id] == kNoNode) continue;
      Node node = source.node(id);
      ConnectInputs(copy, source.node(id), new_ids, &node);
      const std::string device = copy.on_one_device ? device_ : CompletedDevice(node.requested_device, device_);
      node.requested_device = device;
      names.RewriteAttrs(&node);
      node.origin = origin_;
      const Form form = FormOf(node);
      const NodeId added = graph_.AddDerivedNode(absl::StrCat(copy.prefix, "/", std::string(source.node(id).name)), std::move(node), kLowerFunctions);
      if (form != Form::kNone) AddSite(added, form, copy, chain);
    }
    return new_ids;
  }

  void AddSite(NodeId id, Form form, const BodyCopy& copy, int chain) {
    Site site;
    site.chain = chain;
    site.root = copy.root;
    site.among_v1 = copy.body.has_v1_control_flow;
    DescribeSite(graph_.node(id), form, &site);
    sites_.emplace(id, std::move(site));
  }

  void MakeArgControls(BodyCopy& copy, const std::vector<bool>& needed) {
    copy.arg_controls.assign(copy.args.size(), kNothing);
    for (NodeId id = 0; id < copy.body.graph.num_nodes(); ++id) {
      if (!needed[id]) continue;
      for (const Endpoint input : copy.body.graph.node(id).control_inputs()) {
        if (!copy.IsArg(input.node)) continue;
        const size_t arg = static_cast<size_t>(input.node - copy.body.args.front());
        if (!Exists(copy.arg_controls[arg])) copy.arg_controls[arg] = ControlOf(copy.args[arg]);
      }
    }
  }

  // A node that nothing holds back would run although the call does not, or in another frame: it waits for the root. One
  // that takes functions waits for it if any of its inputs is there too early, because it may read that alone.
  void ConnectInputs(const BodyCopy& copy, const Node& source, const std::vector<NodeId>& new_ids, Node* node) const {
    bool any_early = false, any_gated = false;
    for (size_t i = 0; i < source.inputs.size(); ++i) {
      const Endpoint input = source.inputs[i];
      const bool early = copy.IsArg(input.node) && copy.ungated[static_cast<size_t>(input.node - copy.body.args.front())];
      any_early |= early;
      any_gated |= !early;
      node->inputs[i] = copy.Map(input, new_ids);
    }
    const bool takes_functions = FormOf(source) != Form::kNone;
    if (Exists(copy.root) && (!any_gated || (any_early && takes_functions))) node->inputs.push_back(copy.root);
  }

  // A function that has no gradient function of its own is differentiated by the front end; see E36.
  void LowerGradient(NodeId id, const Node& node, const Site& site) {
    FunctionRef function = FunctionAttr(node, "f");
    const absl::string_view gradient = graph_.functions == nullptr ? "" : graph_.functions->Gradient(function.name);
    if (gradient.empty() && bodies_.Get(function).status().code() == absl::StatusCode::kNotFound) {
      return Fail(id, node, site, bodies_.Get(function).status());
    }
    if (gradient.empty()) {
      return Fail(id, node, site, absl::UnimplementedError(absl::StrCat(
          "the library names no gradient of function ", Quoted(function.name), ", and thalweg does not derive one; register a gradient function before "
          "the graph is written (so that its library has a GradientDef), or let the front end write the gradient's nodes into the graph")));
    }
    function.name = std::string(gradient);
    LowerCall(id, node, site, function, 0);
  }

  // ---- Conditionals ----

  void LowerCase(NodeId id, const Node& node, const Site& site) {
    const std::vector<FunctionRef> branches = CalledFunctions(node);
    std::vector<std::string> labels;
    for (size_t b = 0; b < branches.size(); ++b) labels.push_back(absl::StrCat("branch_", b));
    if (branches.empty()) return Fail(id, node, site, absl::InvalidArgumentError("there are no branches"));
    LowerBranches(id, node, site, branches, labels);
  }

  // The function, or why a conditional or loop cannot call it.
  absl::StatusOr<std::shared_ptr<const FunctionBody>> BodyOf(const FunctionRef& function) {
    if (function.name.empty()) return absl::InvalidArgumentError("an attribute that names a function is missing");
    return bodies_.Get(function);
  }

  // E8-E15. `functions` by the output of the Switch that leads to them; `devices`, unless empty, says by branch where all of it runs.
  void LowerBranches(NodeId id, const Node& node, const Site& site, const std::vector<FunctionRef>& functions, const std::vector<std::string>& labels,
                     const std::vector<std::string>& devices = {}) {
    const std::string name(node.name);
    std::vector<std::shared_ptr<const FunctionBody>> bodies;
    std::vector<absl::Status> faults;
    const std::vector<Endpoint> inputs(node.data_inputs().begin() + 1, node.data_inputs().end());
    std::vector<DType> input_types;
    for (const Endpoint input : inputs) input_types.push_back(TypeOf(input));
    bool has_effects = false;
    for (const FunctionRef& function : functions) {
      absl::StatusOr<std::shared_ptr<const FunctionBody>> body = BodyOf(function);
      if (!body.ok()) return Fail(id, node, site, body.status());
      faults.push_back(CheckBranch(**body, input_types, node.output_types));
      has_effects |= !faults.back().ok() || !(*body)->effects(site.effects).empty();
      bodies.push_back(*std::move(body));
    }
    graph_.RemoveNode(id);
    const bool ends_together = site.whole && has_effects;
    const Endpoint selector = Selector(node, site, ends_together);
    const int num_branches = static_cast<int>(functions.size());
    const bool by_index = FormOfOp(node.op) != Form::kIf;

    std::vector<NodeId> switches;
    for (size_t k = 0; k < inputs.size(); ++k) {
      switches.push_back(AddSwitch(absl::StrCat(name, "/_switch_", k), inputs[k], selector, by_index, num_branches));
    }
    const NodeId pivot_switch = AddSwitch(absl::StrCat(name, "/_pivot"), selector, selector, by_index, num_branches);
    std::vector<Endpoint> pivots, executed;
    std::vector<NodeId> calls;
    for (int b = 0; b < num_branches; ++b) {
      pivots.push_back(AddIdentity(absl::StrCat(name, "/_pivot_", labels[b]), {pivot_switch, b}, {}));
      const Endpoint pivot = ControlFrom(pivots.back().node);
      const std::string call_name = absl::StrCat(name, "/", labels[b]);
      if (!faults[b].ok()) {
        calls.push_back(AddFail(call_name, absl::Status(faults[b].code(), absl::StrCat(NodeLabel(node), ": ", faults[b].message())),
                                node.output_types, {pivot}));
      } else {
        std::vector<Endpoint> args;
        for (const NodeId one : switches) args.push_back({one, b});
        Site part{site.chain, pivot, site.effects, false};
        part.on_one_device = !devices.empty();
        if (part.on_one_device) device_ = devices[b];
        calls.push_back(AddPart(call_name, functions[b], std::move(args), node.output_types, std::move(part)));
      }
      if (!faults[b].ok() || !bodies[b]->effects(site.effects).empty()) executed.push_back(ControlFrom(calls.back()));
    }
    const Endpoint all_executed = ControlFrom(AddTyped("Merge", absl::StrCat(name, "/_executed"), pivots, executed));
    std::vector<Endpoint> outputs;
    for (int k = 0; k < node.num_outputs(); ++k) {
      std::vector<Endpoint> results;
      for (const NodeId call : calls) results.push_back({call, k});
      Endpoint output{AddTyped("Merge", absl::StrCat(name, "/_merge_", k), std::move(results)), 0};
      if (ends_together) output = AddIdentity(absl::StrCat(name, "/_result"), output, {all_executed});
      outputs.push_back(output);
    }
    std::vector<Endpoint> all = {all_executed};
    if (site.whole) AppendControlsOf(outputs, &all);
    const Endpoint done = ControlFrom(AddNoOp(name, all));
    Replace(id, std::move(outputs), done, ends_together);
  }

  // A branch of a conditional or part of a loop: a call that the scan will come to.
  NodeId AddPart(const std::string& name, const FunctionRef& function, std::vector<Endpoint> args, absl::Span<const DType> result_types, Site site) {
    AttrMap attrs = CallAttrs(function, args, result_types, site.effects);
    const NodeId call = Add("_Call", name, std::move(args), {}, std::move(attrs), device_);
    sites_.emplace(call, std::move(site));
    return call;
  }

  NodeId AddSwitch(const std::string& name, Endpoint data, Endpoint selector, bool by_index, int num_branches) {
    if (!by_index) return AddTyped("Switch", name, {data, selector});
    AttrMap attrs;
    attrs.Set("T", TypeOf(data));
    attrs.Set("num_outs", int64_t{num_branches});
    const std::string device(graph_.node(data.node).requested_device);
    return Add("_SwitchN", name, {data, selector}, {}, std::move(attrs), device);
  }

  // The predicate or index, held back by whatever the conditional has to wait for.
  Endpoint Selector(const Node& node, const Site& site, bool ends_together) {
    std::vector<Endpoint> waits(node.control_inputs().begin(), node.control_inputs().end());
    if (site.whole && (ends_together || site.among_v1)) AppendControlsOf(node.data_inputs().subspan(1), &waits);
    Endpoint selector = node.inputs[0];
    if (FormOfOp(node.op) == Form::kIf && TypeOf(selector) != DType::kBool) {
      return {AddTyped("ToBool", absl::StrCat(std::string(node.name), "/_predicate"), {selector}, waits), 0};  // E15
    }
    if (waits.empty() && !IsReference(selector)) return selector;
    return AddIdentity(absl::StrCat(std::string(node.name), "/_predicate"), selector, waits);
  }

  // ---- Loops ----

  // A result that is the loop variable as it came in.
  static bool IsInvariant(const FunctionBody& body, int k) {
    Endpoint value = body.result(k);
    while (body.graph.node(value.node).is("Identity")) value = body.graph.node(value.node).inputs[0];
    return value.node == body.args[k];
  }

  // E16-E24. Variables that the body hands on unchanged, resources above all (E17), enter as loop invariants.
  void LowerWhile(NodeId id, const Node& node, const Site& site) {
    const FunctionRef cond_function = FunctionAttr(node, "cond"), body_function = FunctionAttr(node, "body");
    absl::StatusOr<std::shared_ptr<const FunctionBody>> cond = BodyOf(cond_function);
    if (!cond.ok()) return Fail(id, node, site, cond.status());
    absl::StatusOr<std::shared_ptr<const FunctionBody>> body = BodyOf(body_function);
    if (!body.ok()) return Fail(id, node, site, body.status());
    if (absl::Status status = CheckLoop(node, **cond, **body); !status.ok()) return Fail(id, node, site, status);
    const int64_t parallel = node.node_attrs().GetOr<int64_t>("parallel_iterations", 10);
    if (parallel < 1 && IsMarked(node)) {  // E23; a loop that runs as one node has no use for the number
      return Fail(id, node, site, absl::InvalidArgumentError(absl::StrCat("parallel_iterations is ", parallel, "; it must be at least 1")));
    }

    const std::string name(node.name);
    graph_.RemoveNode(id);
    const bool cond_has_effects = !(*cond)->effects(site.effects).empty();
    const bool body_has_effects = !(*body)->effects(site.effects).empty();
    const bool ends_together = site.whole && (cond_has_effects || body_has_effects);
    std::vector<Endpoint> waits(node.control_inputs().begin(), node.control_inputs().end());
    if (site.whole && (ends_together || site.among_v1)) AppendControlsOf(node.data_inputs(), &waits);
    const Endpoint start = Join(absl::StrCat(name, "/_start"), std::move(waits));

    LoopParts loop;
    loop.name = name;
    loop.frame = UniqueFrameName(name, &frames_);
    loop.parallel_iterations = std::max<int64_t>(parallel, 1);
    const std::vector<Endpoint> inputs(node.data_inputs().begin(), node.data_inputs().end());
    AddEnters(inputs, **body, Exists(start) ? start : (inputs.empty() ? site.root : kNothing), &loop);

    std::vector<Endpoint> cond_args;
    for (size_t k = 0; k < inputs.size(); ++k) cond_args.push_back(loop.is_variant[k] ? Endpoint{loop.merges[k], 0} : Endpoint{loop.enters[k], 0});
    const Endpoint in_frame = ControlFrom(loop.pivot_merge);
    const NodeId cond_call = AddPart(absl::StrCat(name, "/cond"), cond_function, std::move(cond_args), {(*cond)->result_type(0)},
                                     {site.chain, in_frame, site.effects, false});
    Endpoint predicate{cond_call, 0};
    if (TypeOf(predicate) != DType::kBool) predicate = {AddTyped("ToBool", absl::StrCat(name, "/_predicate"), {predicate}), 0};
    const Endpoint loop_cond{Add("LoopCond", absl::StrCat(name, "/_loop_cond"), {predicate},
                                 {cond_has_effects ? ControlFrom(cond_call) : kNothing}, {}, device_), 0};
    CloseLoop(inputs, **body, body_function, body_has_effects, loop_cond, node, site, &loop);

    std::vector<Endpoint> exits;
    for (const NodeId exit : loop.exits) exits.push_back(ControlFrom(exit));
    const Endpoint done = ControlFrom(AddNoOp(name, exits));
    std::vector<Endpoint> outputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (loop.is_variant[k]) {
        outputs.push_back({loop.exit_of[k], 0});
      } else if (site.whole && (ends_together || site.among_v1)) {
        outputs.push_back(AddIdentity(absl::StrCat(name, "/_result"), inputs[k], {done}));
      } else {
        outputs.push_back(IsReference(inputs[k]) ? AddIdentity(absl::StrCat(name, "/_result"), inputs[k], {}) : inputs[k]);
      }
    }
    Replace(id, std::move(outputs), done, ends_together);
  }

  struct LoopParts {
    std::string name;
    std::string frame;
    int64_t parallel_iterations = 10;
    std::vector<bool> is_variant;  // by loop variable, as are the next
    std::vector<NodeId> enters;
    std::vector<NodeId> merges;    // kNoNode for invariants
    std::vector<NodeId> exit_of;   // kNoNode for invariants
    NodeId pivot_merge = kNoNode;  // the Merge that stands for the iteration
    NodeId counter_enter = kNoNode; // of the variable that a loop without variables is given
    std::vector<NodeId> exits;
  };

  NodeId AddEnter(const LoopParts& loop, const std::string& name, Endpoint value, bool is_constant, Endpoint start) {
    AttrMap attrs;
    attrs.Set("T", TypeOf(value));
    attrs.Set("frame_name", loop.frame);
    attrs.Set("is_constant", is_constant);
    attrs.Set("parallel_iterations", loop.parallel_iterations);
    const std::string device(graph_.node(value.node).requested_device);
    return Add("Enter", name, {value}, {start}, std::move(attrs), device);
  }

  void AddEnters(const std::vector<Endpoint>& inputs, const FunctionBody& body, Endpoint start, LoopParts* loop) {
    for (size_t k = 0; k < inputs.size(); ++k) loop->is_variant.push_back(!IsInvariant(body, static_cast<int>(k)));
    // A loop needs something that goes round.
    const bool goes_round = std::find(loop->is_variant.begin(), loop->is_variant.end(), true) != loop->is_variant.end();
    if (!goes_round && !inputs.empty()) loop->is_variant[0] = true;
    for (size_t k = 0; k < inputs.size(); ++k) {
      loop->enters.push_back(AddEnter(*loop, absl::StrCat(loop->name, "/_enter_", k), inputs[k], !loop->is_variant[k], start));
      NodeId merge = kNoNode;
      if (loop->is_variant[k]) {
        const Endpoint entered{loop->enters[k], 0};
        merge = AddTyped("Merge", absl::StrCat(loop->name, "/_merge_", k), {entered, entered});
        if (loop->pivot_merge == kNoNode) loop->pivot_merge = merge;
      }
      loop->merges.push_back(merge);
    }
    loop->exit_of.assign(inputs.size(), kNoNode);
    if (!inputs.empty()) return;
    AttrMap attrs;
    attrs.Set("dtype", DType::kInt32);
    attrs.Set("value", ZeroLiteral());
    const NodeId zero = Add("Const", absl::StrCat(loop->name, "/_zero"), {}, {start}, std::move(attrs), device_);
    const Endpoint entered{AddEnter(*loop, absl::StrCat(loop->name, "/_enter"), {zero, 0}, false, start), 0};
    loop->pivot_merge = AddTyped("Merge", absl::StrCat(loop->name, "/_merge"), {entered, entered});
  }

  static TensorLiteralPtr ZeroLiteral() {
    static constexpr int32_t kZero = 0;
    auto literal = std::make_shared<TensorLiteral>();
    literal->dtype = DType::kInt32;
    literal->content = absl::string_view(reinterpret_cast<const char*>(&kZero), sizeof(kZero));
    return literal;
  }

  // From the condition round to the Merges, and out.
  void CloseLoop(const std::vector<Endpoint>& inputs, const FunctionBody& body, const FunctionRef& function, bool has_effects, Endpoint loop_cond,
                 const Node& node, const Site& site, LoopParts* loop) {
    std::vector<NodeId> switches(inputs.size(), kNoNode);
    NodeId pivot_switch = kNoNode;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!loop->is_variant[k]) continue;
      switches[k] = AddTyped("Switch", absl::StrCat(loop->name, "/_switch_", k), {{loop->merges[k], 0}, loop_cond});
      if (pivot_switch == kNoNode) pivot_switch = switches[k];
      loop->exit_of[k] = AddTyped("Exit", absl::StrCat(loop->name, "/_exit_", k), {{switches[k], 0}});
      loop->exits.push_back(loop->exit_of[k]);
    }
    if (pivot_switch == kNoNode) {
      pivot_switch = AddTyped("Switch", absl::StrCat(loop->name, "/_switch"), {{loop->pivot_merge, 0}, loop_cond});
      loop->exits.push_back(AddTyped("Exit", absl::StrCat(loop->name, "/_exit"), {{pivot_switch, 0}}));
    }
    const Endpoint pivot_value = AddIdentity(absl::StrCat(loop->name, "/_pivot"), {pivot_switch, 1}, {});
    const Endpoint pivot = ControlFrom(pivot_value.node);
    Site part{site.chain, pivot, site.effects, false};
    std::vector<Endpoint> args;
    for (size_t k = 0; k < inputs.size(); ++k) {
      args.push_back(loop->is_variant[k] ? Endpoint{switches[k], 1} : Endpoint{loop->enters[k], 0});
      part.ungated.push_back(!loop->is_variant[k]);
    }
    const NodeId call = AddPart(absl::StrCat(loop->name, "/body"), function, std::move(args), node.output_types, std::move(part));
    const Endpoint effects_done = has_effects ? ControlFrom(call) : kNothing;  // E21
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (!loop->is_variant[k]) continue;
      // What the body hands on untouched may be an invariant, which is there also when the loop is over.
      const bool is_handed_on = IsStepBoundary(body.graph.node(body.result(static_cast<int>(k)).node));
      AddBackEdge(*loop, k, {call, static_cast<int32_t>(k)}, {effects_done, is_handed_on ? pivot : kNothing}, loop->merges[k]);
    }
    if (inputs.empty()) AddBackEdge(*loop, 0, pivot_value, {effects_done}, loop->pivot_merge);
  }

  void AddBackEdge(const LoopParts& loop, size_t k, Endpoint value, const std::vector<Endpoint>& controls, NodeId merge) {
    const NodeId next = AddTyped("NextIteration", absl::StrCat(loop.name, "/_next_", k), {value}, controls);
    graph_.mutable_node(merge).inputs[1] = {next, 0};
  }

  // ---- The end ----

  Endpoint Resolve(Endpoint e) const {
    for (auto found = replaced_.find(e.node); found != replaced_.end(); found = replaced_.find(e.node)) {
      e = e.is_control() ? found->second.done : found->second.outputs[e.port];
      if (!Exists(e)) return e;
    }
    return e;
  }

  void ConnectReaders() {
    for (NodeId id = 0; id < graph_.num_nodes(); ++id) {
      Node& node = graph_.mutable_node(id);
      if (node.removed) continue;
      for (Endpoint& input : node.inputs) input = Resolve(input);
      const auto first_control = node.inputs.begin() + node.num_data_inputs;
      std::sort(first_control, node.inputs.end());
      node.inputs.erase(std::unique(first_control, node.inputs.end()), node.inputs.end());
      node.inputs.erase(std::remove_if(first_control, node.inputs.end(), [](Endpoint e) { return !Exists(e); }), node.inputs.end());
    }
  }

  void KeepWhatMustRun() {
    absl::flat_hash_set<NodeId> preserve;
    for (const NodeId id : step_.preserve) {
      if (!graph_.node(id).removed) preserve.insert(id);
    }
    for (const Endpoint done : must_run_) {
      const Endpoint resolved = Resolve(done);
      if (Exists(resolved)) preserve.insert(resolved.node);
    }
    KeepEffectsBehindArguments(&preserve);
    step_.preserve = std::move(preserve);
  }

  // What runs as one node waits for all its arguments: what changes something on the way to one runs, even if no body reads it.
  void KeepEffectsBehindArguments(absl::flat_hash_set<NodeId>* preserve) const {
    std::vector<bool> seen(graph_.num_nodes(), false);
    std::vector<NodeId> work;
    const auto see = [&](NodeId id) {
      if (seen[id]) return;
      seen[id] = true;
      work.push_back(id);
    };
    const auto see_inputs = [&](NodeId id) {
      for (const Endpoint input : graph_.node(id).inputs) see(input.node);
    };
    for (const NodeId id : *preserve) see(id);
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      see_inputs(id);
    }
    for (const Endpoint arg : awaited_args_) {
      const Endpoint resolved = Resolve(arg);
      if (Exists(resolved)) see(resolved.node);
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (graph_.node(id).stateful()) preserve->insert(id);
      see_inputs(id);
    }
  }

  PrunedGraph& step_;
  Graph& graph_;
  const LoweringOptions& options_;
  FunctionBodies bodies_;
  const NodeId num_given_;
  bool has_v1_ = false;
  std::vector<Chain> chains_;
  std::vector<std::shared_ptr<const FunctionBody>> kept_bodies_;  // those that chains_ names
  absl::flat_hash_map<NodeId, Site> sites_;                       // of nodes that lowering added
  absl::flat_hash_map<NodeId, Replacement> replaced_;
  absl::flat_hash_map<Endpoint, Endpoint> identity_of_;           // of outputs of Switches
  absl::flat_hash_set<std::string> frames_;
  std::vector<DType> types_;                                      // reused
  std::vector<Endpoint> must_run_;
  std::vector<Endpoint> awaited_args_;  // of all that behaves as one node
  // Of the node that is being lowered.
  NodeId origin_ = kNoNode;
  std::string device_;
};

}  // namespace

bool IsOfFunctionalForm(const Node& node) { return FormOf(node) != Form::kNone; }
bool IsKeptCall(const Node& node) { return FormOf(node) == Form::kPlainCall; }

absl::Status LowerFunctions(PrunedGraph& step, const LoweringOptions& options) { return Lowerer(step, options).Run(); }

}  // namespace thalweg
