#include "thalweg/graph/prune.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cycles.h"
#include "thalweg/graph/internal_nodes.h"

namespace thalweg {
namespace {

// Placeholders of older producers wrote a scalar shape where they meant "unknown".
constexpr int kFirstProducerWithScalarPlaceholders = 24;

class Pruner {
 public:
  Pruner(const Graph& loaded, const StepSignature& signature) : loaded_(loaded), signature_(signature) {}

  absl::StatusOr<PrunedGraph> Run() {
    THALWEG_RETURN_IF_ERROR(CheckSignature());
    MarkLive();
    result_.graph = loaded_.EmptyCopy();
    result_.graph.Reserve(
        static_cast<int>(live_count_ + signature_.feeds.size() + signature_.connections.size() + signature_.fetches.size()));
    THALWEG_RETURN_IF_ERROR(AddArgs());
    THALWEG_RETURN_IF_ERROR(AddConnections());
    CopyLiveNodes();
    THALWEG_RETURN_IF_ERROR(Connect());
    THALWEG_RETURN_IF_ERROR(AddRetvals());
    for (NodeId target : signature_.targets) result_.preserve.insert(NewNode(target));
    return std::move(result_);
  }

 private:
  absl::Status CheckSignature() {
    if (signature_.fetches.empty() && signature_.targets.empty()) {
      return absl::InvalidArgumentError(
          "nothing to do: a step needs at least one tensor to fetch or one target to run");
    }
    for (const Endpoint feed : signature_.feeds) {
      THALWEG_RETURN_IF_ERROR(CheckEndpoint(feed, "feed"));
      if (!replaced_.insert(feed).second) {
        return absl::InvalidArgumentError(absl::StrCat("tensor ", loaded_.EndpointName(feed), " is fed twice"));
      }
      if (IsPlaceholder(loaded_.node(feed.node))) fed_placeholders_.emplace(feed.node, feed);
    }
    for (const Connection& connection : signature_.connections) THALWEG_RETURN_IF_ERROR(CheckConnection(connection));
    for (Endpoint fetch : signature_.fetches) THALWEG_RETURN_IF_ERROR(CheckEndpoint(fetch, "fetch"));
    for (NodeId target : signature_.targets) {
      if (target < 0 || target >= loaded_.num_nodes() || loaded_.node(target).removed) {
        return absl::InvalidArgumentError(absl::StrCat("target ", target, " is no node of the graph"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckConnection(const Connection& connection) {
    const auto [from, to] = connection;
    THALWEG_RETURN_IF_ERROR(CheckEndpoint(from, "connect"));
    THALWEG_RETURN_IF_ERROR(CheckEndpoint(to, "connect"));
    const DType given = RemoveRef(loaded_.node(from.node).output_types[from.port]);
    const DType wanted = RemoveRef(loaded_.node(to.node).output_types[to.port]);
    if (given != wanted) {
      return absl::InvalidArgumentError(absl::StrCat("cannot use ", loaded_.EndpointName(from), " in place of ", loaded_.EndpointName(to),
                                                     ": it is ", DTypeName(given), ", not ", DTypeName(wanted)));
    }
    if (!replaced_.insert(to).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", loaded_.EndpointName(to), " is fed or connected twice"));
    }
    connected_.emplace(to, from);
    if (IsPlaceholder(loaded_.node(to.node))) fed_placeholders_.emplace(to.node, to);
    return absl::OkStatus();
  }

  absl::Status CheckEndpoint(Endpoint e, const char* what) {
    if (e.node < 0 || e.node >= loaded_.num_nodes() || loaded_.node(e.node).removed) {
      return absl::InvalidArgumentError(absl::StrCat("cannot ", what, " node ", e.node, ": no such node in the graph"));
    }
    const Node& node = loaded_.node(e.node);
    if (e.is_control()) {
      return absl::InvalidArgumentError(absl::StrCat("cannot ", what, " ^", node.name,
                                                     ": a control edge carries no value; make it a target to run it"));
    }
    if (e.port < 0 || e.port >= node.num_outputs()) {
      return absl::InvalidArgumentError(absl::StrCat("cannot ", what, " ", node.name, ":", e.port, ": ", node.op,
                                                     " has ", node.num_outputs(), " outputs"));
    }
    return absl::OkStatus();
  }

  // The feed that stands in for what an edge carries, or null.
  const Endpoint* FeedFor(Endpoint input) const {
    if (replaced_.empty()) return nullptr;
    if (input.is_control()) {
      auto it = fed_placeholders_.find(input.node);
      return it == fed_placeholders_.end() ? nullptr : &it->second;
    }
    auto it = replaced_.find(input);
    return it == replaced_.end() ? nullptr : &*it;
  }

  void MarkLive() {
    live_.assign(loaded_.num_nodes(), false);
    std::vector<NodeId> work;
    auto reach = [&](Endpoint e) {
      while (const Endpoint* feed = FeedFor(e)) {
        const bool is_new = used_feeds_.insert(*feed).second;
        const auto connection = connected_.find(*feed);
        if (!is_new || connection == connected_.end()) return;
        e = connection->second;
      }
      if (!live_[e.node]) {
        live_[e.node] = true;
        ++live_count_;
        work.push_back(e.node);
      }
    };
    for (Endpoint fetch : signature_.fetches) reach(fetch);
    for (NodeId target : signature_.targets) reach({target, kControlPort});
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      for (Endpoint input : loaded_.node(id).inputs) reach(input);
    }
  }

  absl::Status AddArgs() {
    for (size_t i = 0; i < signature_.feeds.size(); ++i) {
      const Endpoint feed = signature_.feeds[i];
      if (!used_feeds_.contains(feed)) continue;
      const Node& fed = loaded_.node(feed.node);
      const DType dtype = RemoveRef(fed.output_types[feed.port]);
      THALWEG_ASSIGN_OR_RETURN(Node arg, NewInternalNode(loaded_, "_Arg"));
      arg.attrs.Set("index", static_cast<int64_t>(i));
      arg.attrs.Set("T", dtype);
      if (auto shape = StatedShape(fed, feed.port)) {
        arg.attrs.Set("_output_shapes", MakeListAttr(std::vector<PartialShape>{*std::move(shape)}));
      }
      arg.output_types = {dtype};
      const NodeId id =
          result_.graph.AddDerivedNode(absl::StrCat("_arg_", fed.name, "_", feed.port, "_", i), std::move(arg), "feed");
      result_.graph.mutable_node(id).origin = feed.node;
      arg_of_.emplace(feed, id);
      result_.preserve.insert(id);
    }
    return absl::OkStatus();
  }

  // Their inputs may come later in the graph: Connect.
  absl::Status AddConnections() {
    for (const auto& [from, to] : signature_.connections) {
      if (!used_feeds_.contains(to)) continue;
      const Node& fed = loaded_.node(to.node);
      const DType dtype = RemoveRef(fed.output_types[to.port]);
      THALWEG_ASSIGN_OR_RETURN(Node identity, NewInternalNode(loaded_, "Identity"));
      identity.attrs.Set("T", dtype);
      identity.requested_device = fed.requested_device;
      identity.output_types = {dtype};
      const NodeId id = result_.graph.AddDerivedNode(absl::StrCat(fed.name, "/_connected_", to.port), std::move(identity), "connection");
      result_.graph.mutable_node(id).origin = to.node;
      arg_of_.emplace(to, id);
      result_.preserve.insert(id);
    }
    return absl::OkStatus();
  }

  absl::Status Connect() {
    bool any = false;
    for (const auto& [from, to] : signature_.connections) {
      if (!used_feeds_.contains(to)) continue;
      Node& identity = result_.graph.mutable_node(arg_of_.at(to));
      identity.inputs = {NewEndpoint(from)};
      identity.num_data_inputs = 1;
      any = true;
    }
    if (!any) return absl::OkStatus();
    const std::vector<std::vector<NodeId>> cycles = FindCycles(result_.graph);
    if (cycles.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the connected tensors make a cycle: ", CycleToString(result_.graph, cycles[0]),
                                                   "; connect one that does not depend on what it replaces"));
  }

  // The shape that the graph itself promises for a fed tensor; other tensors may be fed with any shape.
  std::optional<PartialShape> StatedShape(const Node& fed, int port) const {
    if (!IsPlaceholder(fed) || port != 0) return std::nullopt;
    absl::StatusOr<PartialShape> shape = fed.node_attrs().Get<PartialShape>("shape");
    if (!shape.ok()) return std::nullopt;
    const bool legacy_unknown = fed.is("Placeholder") && shape->rank() == 0 && loaded_.versions.producer != 0 &&
                                loaded_.versions.producer < kFirstProducerWithScalarPlaceholders;
    if (legacy_unknown) return std::nullopt;
    return *std::move(shape);
  }

  void CopyLiveNodes() {
    new_id_.assign(loaded_.num_nodes(), kNoNode);
    // Ids of live nodes are consecutive after the _Arg nodes, so that edges to later nodes can be written at once.
    NodeId next = result_.graph.num_nodes();
    for (NodeId id = 0; id < loaded_.num_nodes(); ++id) {
      if (live_[id]) new_id_[id] = next++;
    }
    for (NodeId id = 0; id < loaded_.num_nodes(); ++id) {
      if (!live_[id]) continue;
      Node copy = loaded_.node(id);
      copy.origin = id;
      for (Endpoint& input : copy.inputs) input = NewEndpoint(input);
      result_.graph.AddCopiedNode(std::move(copy));
    }
    for (Endpoint feed : signature_.feeds) {
      if (live_[feed.node]) result_.preserve.insert(new_id_[feed.node]);
    }
  }

  Endpoint NewEndpoint(Endpoint old) const {
    if (const Endpoint* feed = FeedFor(old)) return {arg_of_.at(*feed), old.is_control() ? kControlPort : 0};
    return {new_id_[old.node], old.port};
  }
  NodeId NewNode(NodeId old) const { return NewEndpoint({old, kControlPort}).node; }

  absl::Status AddRetvals() {
    for (size_t i = 0; i < signature_.fetches.size(); ++i) {
      const Endpoint fetch = signature_.fetches[i];
      const Node& fetched = loaded_.node(fetch.node);
      THALWEG_ASSIGN_OR_RETURN(Node retval, NewInternalNode(loaded_, "_Retval"));
      retval.attrs.Set("index", static_cast<int64_t>(i));
      retval.attrs.Set("T", RemoveRef(fetched.output_types[fetch.port]));
      const Endpoint source = NewEndpoint(fetch);
      retval.inputs = {source};
      retval.num_data_inputs = 1;
      const NodeId id = result_.graph.AddDerivedNode(absl::StrCat("_retval_", fetched.name, "_", fetch.port, "_", i),
                                                     std::move(retval), "fetch");
      result_.preserve.insert(id);
      result_.preserve.insert(source.node);
    }
    return absl::OkStatus();
  }

  const Graph& loaded_;
  const StepSignature& signature_;
  absl::flat_hash_set<Endpoint> replaced_;  // fed or connected
  absl::flat_hash_map<Endpoint, Endpoint> connected_;  // of these: what stands for it
  absl::flat_hash_map<NodeId, Endpoint> fed_placeholders_;
  absl::flat_hash_set<Endpoint> used_feeds_;
  absl::flat_hash_map<Endpoint, NodeId> arg_of_;
  std::vector<bool> live_;
  int64_t live_count_ = 0;
  std::vector<NodeId> new_id_;
  PrunedGraph result_;
};

}  // namespace

bool IsPlaceholder(const Node& node) { return node.is("Placeholder") || node.is("PlaceholderV2"); }

absl::StatusOr<PrunedGraph> PruneGraph(const Graph& loaded, const StepSignature& signature) {
  return Pruner(loaded, signature).Run();
}

}  // namespace thalweg
