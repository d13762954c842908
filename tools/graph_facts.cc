#include "thalweg/tools/graph_facts.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

// Gives every node the frame it runs in, walking producers before consumers: Enter goes one frame in, Exit one out.
class FrameFinder {
 public:
  explicit FrameFinder(const Graph& graph) : graph_(graph), frame_of_(graph.num_nodes(), kRoot) {}

  std::vector<FrameFacts> Find() {
    const absl::StatusOr<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!order.ok()) return {};
    for (const NodeId id : *order) Visit(id);
    return std::move(frames_);
  }

 private:
  static constexpr int kRoot = -1;

  void Visit(NodeId id) {
    const Node& node = graph_.node(id);
    int frame = kRoot;
    for (const Endpoint input : node.inputs) {
      if (Depth(FrameSeenThrough(input)) > Depth(frame)) frame = FrameSeenThrough(input);
    }
    if (node.is("Enter") || node.is("RefEnter"))
      frame = Child(frame, node.node_attrs().GetOr<std::string>("frame_name", ""));
    frame_of_[id] = frame;
    if (frame != kRoot) ++frames_[frame].nodes;
  }

  // What reads an Exit runs in the frame around it.
  int FrameSeenThrough(Endpoint input) const {
    const Node& producer = graph_.node(input.node);
    const int frame = frame_of_[input.node];
    return frame != kRoot && (producer.is("Exit") || producer.is("RefExit")) ? parents_[frame] : frame;
  }

  int Child(int parent, const std::string& name) {
    const auto [it, added] = ids_.try_emplace({parent, name}, static_cast<int>(frames_.size()));
    if (added) {
      frames_.push_back({name, Depth(parent) + 1, 0});
      parents_.push_back(parent);
    }
    return it->second;
  }

  int Depth(int frame) const { return frame == kRoot ? 0 : frames_[frame].depth; }

  const Graph& graph_;
  std::vector<int> frame_of_;
  std::vector<FrameFacts> frames_;
  std::vector<int> parents_;
  std::map<std::pair<int, std::string>, int> ids_;
};

std::string ExampleInput(const GraphView& view, NodeId id) {
  const Node& node = view.graph().node(id);
  const PartialShape& shape = view.shapes.output(id, 0);
  const DType dtype = node.output_types[0];
  std::vector<std::string> dims;
  for (const int64_t d : shape.dims()) dims.push_back(absl::StrCat(IsKnownDim(d) ? d : 1));
  if (dtype == DType::kString) return absl::StrCat(node.name, "=text");
  return absl::StrCat(node.name, "=rand:", DTypeName(dtype), ":", dims.empty() ? "scalar" : absl::StrJoin(dims, "x"),
                      "~1");
}

}  // namespace

int64_t GraphFacts::runnable(const std::string& backend) const {
  int64_t count = 0;
  for (const OpCoverage& row : coverage) {
    const auto found = row.runnable.find(backend);
    count += row.is_function ? row.nodes : found == row.runnable.end() ? 0 : found->second;
  }
  return count;
}

GraphFacts GatherFacts(const GraphView& view) {
  GraphFacts facts;
  facts.frames = FrameFinder(view.graph()).Find();
  facts.coverage = CoverageOfGraph(view.graph());
  return facts;
}

std::string ExampleRun(const GraphView& view) {
  constexpr size_t kMaxOutputs = 3;
  const std::vector<std::string> fetches = LikelyFetches(*view.summary, kMaxOutputs);
  if (fetches.empty()) return "";
  const absl::StatusOr<std::vector<NodeId>> needed = UnfedPlaceholders(view.graph(), {}, fetches, {});
  if (!needed.ok()) return "";
  std::string command = absl::StrCat("thalweg run ", ShellQuote(view.path));
  for (const NodeId id : *needed) absl::StrAppend(&command, " -i ", ShellQuote(ExampleInput(view, id)));
  for (const std::string& fetch : fetches) absl::StrAppend(&command, " -f ", ShellQuote(fetch));
  return command;
}

}  // namespace thalweg::tools
