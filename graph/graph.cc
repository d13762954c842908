#include "thalweg/graph/graph.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "thalweg/graph/cycles.h"
#include "thalweg/graph/nearest.h"

namespace thalweg {

// Append-only storage of characters. Not locked: only the graph that owns it writes.
class Graph::StringArena {
 public:
  absl::string_view Store(absl::string_view text) {
    if (text.empty()) return "";
    if (text.size() > left_) AddBlock(text.size());
    char* const start = next_;
    std::memcpy(start, text.data(), text.size());
    next_ += text.size();
    left_ -= text.size();
    return {start, text.size()};
  }

  absl::string_view Intern(absl::string_view text) {
    const auto found = shared_.find(text);
    if (found != shared_.end()) return *found;
    return *shared_.insert(Store(text)).first;
  }

  bool empty() const { return blocks_.empty(); }

 private:
  void AddBlock(size_t at_least) {
    block_size_ = std::min<size_t>(block_size_ * 2, 256 << 10);
    const size_t size = std::max(block_size_, at_least);
    blocks_.push_back(std::unique_ptr<char[]>(new char[size]));
    next_ = blocks_.back().get();
    left_ = size;
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  absl::flat_hash_set<absl::string_view> shared_;  // texts that repeat: ops, devices
  char* next_ = nullptr;
  size_t left_ = 0;
  size_t block_size_ = 512;
};

bool IsLoopBackEdge(const Node& from, const Node& to) {
  return (to.op == "Merge" || to.op == "RefMerge") && (from.op == "NextIteration" || from.op == "RefNextIteration");
}

Graph::Graph() : arena_(std::make_shared<StringArena>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph&& other) noexcept = default;
Graph& Graph::operator=(Graph&& other) noexcept = default;

Graph::Graph(const Graph& other)
    : versions(other.versions),
      functions(other.functions),
      schemas(other.schemas),
      nodes_(other.nodes_),
      by_name_(other.by_name_),
      derived_counts_(other.derived_counts_),
      arena_(std::make_shared<StringArena>()),
      owners_(other.owners_) {
  if (other.arena_ && !other.arena_->empty()) owners_.push_back(other.arena_);
}

Graph& Graph::operator=(const Graph& other) {
  if (this != &other) *this = Graph(other);
  return *this;
}

NodeId Graph::Find(absl::string_view name) const {
  return by_name_.Find(name, [this](NodeId id) { return nodes_[id].name; });
}

NodeId Graph::AddNode(Node node) {
  const NodeId id = num_nodes();
  node.name = arena_->Store(node.name);
  node.op = arena_->Intern(node.op);
  node.requested_device = arena_->Intern(node.requested_device);
  by_name_.InsertIfNew(node.name, id, [this](NodeId other) { return nodes_[other].name; });
  nodes_.push_back(std::move(node));
  return id;
}

NodeId Graph::AddDerivedNode(absl::string_view base, Node node, const char* pass) {
  std::string unique(base);
  if (Find(base) != kNoNode) {
    auto count = derived_counts_.find(base);
    if (count == derived_counts_.end()) count = derived_counts_.emplace(arena_->Store(base), 1).first;
    do {
      unique = absl::StrCat(base, "/", count->second++);
    } while (Find(unique) != kNoNode);
  }
  node.name = unique;
  node.inserted_by = pass;
  return AddNode(std::move(node));
}

void Graph::RemoveNode(NodeId id) {
  Node& node = nodes_[id];
  node.removed = true;
  by_name_.Erase(node.name, id);
}

void Graph::AddControlEdge(NodeId from, NodeId to) {
  Node& node = nodes_[to];
  const Endpoint edge{from, kControlPort};
  const auto controls = node.control_inputs();
  if (std::find(controls.begin(), controls.end(), edge) == controls.end()) node.inputs.push_back(edge);
}

void Graph::RedirectUses(const Consumers& consumers, Endpoint from, Endpoint to) {
  for (const Consumers::Use& use : consumers.of(from.node)) {
    if (use.port != from.port || nodes_[use.node].removed) continue;
    NodeInputs& inputs = nodes_[use.node].inputs;
    if (static_cast<size_t>(use.input) < inputs.size() && inputs[use.input] == from) inputs[use.input] = to;
  }
}

NodeId Graph::AddCopiedNode(Node node) {
  const NodeId id = num_nodes();
  by_name_.InsertIfNew(node.name, id, [this](NodeId other) { return nodes_[other].name; });
  nodes_.push_back(std::move(node));
  return id;
}

void Graph::Reserve(int nodes) {
  nodes_.reserve(nodes);
  by_name_.Reserve(nodes);
}

Graph Graph::EmptyCopy() const {
  Graph empty;
  empty.versions = versions;
  empty.functions = functions;
  empty.schemas = schemas;
  empty.owners_ = owners_;
  if (!arena_->empty()) empty.owners_.push_back(arena_);
  return empty;
}

Consumers Graph::BuildConsumers() const {
  Consumers consumers;
  consumers.offsets_.assign(nodes_.size() + 1, 0);
  const auto for_each_edge = [this](auto&& visit) {
    for (NodeId id = 0; id < num_nodes(); ++id) {
      if (nodes_[id].removed) continue;
      const NodeInputs& inputs = nodes_[id].inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].node != kNoNode) visit(id, static_cast<int32_t>(i), inputs[i]);
      }
    }
  };
  for_each_edge([&](NodeId, int32_t, Endpoint producer) { ++consumers.offsets_[producer.node + 1]; });
  for (size_t i = 1; i < consumers.offsets_.size(); ++i) consumers.offsets_[i] += consumers.offsets_[i - 1];
  consumers.uses_.resize(consumers.offsets_.back());
  std::vector<int32_t> next(consumers.offsets_.begin(), consumers.offsets_.end() - 1);
  for_each_edge([&](NodeId reader, int32_t input, Endpoint producer) {
    consumers.uses_[next[producer.node]++] = {reader, input, producer.port};
  });
  return consumers;
}

// Depth first along the inputs, in order of ids: ids that are in topological order already keep it.
absl::StatusOr<std::vector<NodeId>> Graph::TopologicalOrder() const {
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  struct Frame {
    NodeId node;
    size_t next_input;
  };
  std::vector<Mark> marks(nodes_.size(), Mark::kNew);
  std::vector<Frame> frames;
  std::vector<NodeId> order;
  order.reserve(nodes_.size());
  for (NodeId root = 0; root < num_nodes(); ++root) {
    if (nodes_[root].removed || marks[root] != Mark::kNew) continue;
    marks[root] = Mark::kOpen;
    frames.push_back({root, 0});
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const Node& node = nodes_[frame.node];
      if (frame.next_input == node.inputs.size()) {
        marks[frame.node] = Mark::kDone;
        order.push_back(frame.node);
        frames.pop_back();
        continue;
      }
      const NodeId producer = node.inputs[frame.next_input++].node;
      if (producer == kNoNode || marks[producer] == Mark::kDone || nodes_[producer].removed) continue;
      if (IsLoopBackEdge(nodes_[producer], node)) continue;
      if (marks[producer] == Mark::kOpen) {
        return absl::InvalidArgumentError(
            absl::StrCat("the graph has a cycle: ", CycleToString(*this, FindCycles(*this).front())));
      }
      marks[producer] = Mark::kOpen;
      frames.push_back({producer, 0});
    }
  }
  return order;
}

absl::StatusOr<Graph> Graph::Compacted(std::vector<NodeId>* old_to_new) const {
  Graph compact = *this;
  THALWEG_RETURN_IF_ERROR(compact.Compact(old_to_new));
  return compact;
}

absl::Status Graph::Compact(std::vector<NodeId>* old_to_new) {
  std::vector<NodeId> new_ids(nodes_.size(), kNoNode);
  size_t kept = 0;
  {
    THALWEG_ASSIGN_OR_RETURN(const std::vector<NodeId> order, TopologicalOrder());
    for (const NodeId id : order) new_ids[id] = static_cast<NodeId>(kept++);
  }
  for (Node& node : nodes_) {
    if (node.removed) continue;
    for (Endpoint& input : node.inputs) {
      const NodeId producer = new_ids[input.node];
      if (producer == kNoNode) {
        return absl::InternalError(
            absl::StrCat("node '", node.name, "' still reads the removed node '", nodes_[input.node].name, "'"));
      }
      input.node = producer;
    }
  }
  if (old_to_new != nullptr) *old_to_new = new_ids;
  MoveNodes(std::move(new_ids), kept);
  return absl::OkStatus();
}

// Puts every node where `new_ids` says, along the cycles of the permutation, and drops those that have no new id.
void Graph::MoveNodes(std::vector<NodeId> new_ids, size_t kept) {
  bool moved = kept < nodes_.size();
  NodeId dropped = static_cast<NodeId>(kept);
  for (NodeId& id : new_ids) {
    if (id == kNoNode) id = dropped++;
  }
  for (NodeId id = 0; id < num_nodes(); ++id) {
    while (new_ids[id] != id) {
      const NodeId target = new_ids[id];
      std::swap(nodes_[id], nodes_[target]);
      std::swap(new_ids[id], new_ids[target]);
      moved = true;
    }
  }
  if (!moved) return;
  nodes_.resize(kept);
  if (kept < nodes_.capacity() / 4 * 3) nodes_.shrink_to_fit();
  by_name_ = NameIndex();
  by_name_.Reserve(kept);
  for (NodeId id = 0; id < num_nodes(); ++id) {
    by_name_.InsertIfNew(nodes_[id].name, id, [this](NodeId other) { return nodes_[other].name; });
  }
}

absl::string_view Graph::Intern(absl::string_view text) { return arena_->Intern(text); }

absl::StatusOr<Endpoint> Graph::ParseEndpoint(absl::string_view text) const {
  absl::string_view name = absl::StripAsciiWhitespace(text);
  const bool control = absl::ConsumePrefix(&name, "^");
  const size_t colon = name.rfind(':');
  const bool has_port = colon != absl::string_view::npos;
  int32_t port = 0;
  if (has_port) {
    const absl::string_view digits = name.substr(colon + 1);
    name = name.substr(0, colon);
    const bool numeric = !digits.empty() && std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
    if (control || name.empty() || !numeric || !absl::SimpleAtoi(digits, &port)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", text,
          "' does not name a tensor: write NODE or NODE:PORT with a decimal port, or ^NODE for its control output"));
    }
  }
  if (name.empty()) return absl::InvalidArgumentError("an empty text does not name a tensor: write NODE or NODE:PORT");
  const NodeId id = Find(name);
  if (id == kNoNode) {
    return absl::NotFoundError(absl::StrCat("the graph has no node '", name, "'", DidYouMean(NearestNames(name))));
  }
  const int outputs = nodes_[id].num_outputs();
  if (control || (!has_port && outputs == 0)) return Endpoint{id, kControlPort};
  if (port >= outputs) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' (", nodes_[id].op, ") has no output ", port,
                                                   ": it has ", outputs, outputs == 1 ? " output" : " outputs"));
  }
  return Endpoint{id, port};
}

std::string Graph::EndpointName(Endpoint e) const {
  if (e.is_control()) return absl::StrCat("^", nodes_[e.node].name);
  return absl::StrCat(nodes_[e.node].name, ":", e.port);
}

std::vector<std::string> Graph::NearestNames(absl::string_view name, int limit) const {
  NearestNameFinder finder(name, limit);
  for (const Node& node : nodes_) {
    if (!node.removed) finder.Offer(node.name);
  }
  return finder.Names();
}

std::string Graph::ToString() const {
  std::string text;
  for (const Node& node : nodes_) {
    if (node.removed) continue;
    absl::StrAppend(&text, node.name, " = ", node.op, "(");
    const char* separator = "";
    for (const Endpoint input : node.inputs) {
      absl::StrAppend(&text, separator, input.node == kNoNode ? "?" : EndpointName(input));
      separator = ", ";
    }
    absl::StrAppend(&text, ")");
    if (node.attrs.size() > 0) {
      absl::StrAppend(&text, " [");
      separator = "";
      for (const auto& [attr, value] : node.attrs) {
        absl::StrAppend(&text, separator, attr, "=", AttrToString(value));
        separator = ", ";
      }
      absl::StrAppend(&text, "]");
    }
    if (!node.requested_device.empty()) absl::StrAppend(&text, " @", node.requested_device);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace thalweg
