#include "thalweg/runtime/segments.h"

#include <algorithm>

#include "thalweg/runtime/tuning.h"

namespace thalweg {
namespace {

bool StandsAlone(const SegmentNode& node) { return node.asynchronous || node.nanos >= kExpensiveNodeNanos; }

class Builder {
 public:
  Builder(absl::Span<const SegmentNode> nodes, const NodeLists& predecessors)
      : nodes_(nodes), predecessors_(predecessors), segment_of_(nodes.size()) {}

  SegmentGraph Build() {
    for (int32_t i = 0; i < static_cast<int32_t>(nodes_.size()); ++i) Assign(i);
    return Emit();
  }

 private:
  struct Draft {
    std::vector<int32_t> nodes;
    std::vector<int32_t> predecessors;  // segments, distinct
    double nanos = 0;
    int32_t level = 0;  // greater than the level of every predecessor
    int32_t device = 0;
    bool alone = false;
    bool asynchronous = false;
  };

  std::vector<int32_t> PredecessorSegments(int32_t node) const {
    std::vector<int32_t> segments;
    for (int32_t p : predecessors_[node]) segments.push_back(segment_of_[p]);
    std::sort(segments.begin(), segments.end());
    segments.erase(std::unique(segments.begin(), segments.end()), segments.end());
    return segments;
  }

  // The segment that a cheap node may be appended to, or -1. All its predecessors must be there, or come from cheap
  // segments of a lower level, which the segment may wait for without losing parallelism worth having.
  int32_t Joinable(int32_t node, const std::vector<int32_t>& predecessors) const {
    const SegmentNode& n = nodes_[node];
    if (predecessors.empty()) {
      return n.device < static_cast<int32_t>(roots_.size()) ? roots_[n.device] : -1;
    }
    int32_t last = predecessors[0];
    for (int32_t s : predecessors) {
      if (drafts_[s].level > drafts_[last].level) last = s;
    }
    const Draft& target = drafts_[last];
    if (target.asynchronous || target.device != n.device || target.nanos + n.nanos >= Limit(target)) return -1;
    for (int32_t s : predecessors) {
      if (s == last) continue;
      if (target.alone || drafts_[s].alone || drafts_[s].level >= target.level) return -1;
    }
    return last;
  }

  // A cheap tail after an expensive node must not delay the node's other successors noticeably.
  static double Limit(const Draft& target) { return target.alone ? target.nanos + kExpensiveNodeNanos : 2 * kExpensiveNodeNanos; }

  void Assign(int32_t node) {
    std::vector<int32_t> predecessors = PredecessorSegments(node);
    const SegmentNode& n = nodes_[node];
    const bool alone = StandsAlone(n);
    int32_t segment = alone ? -1 : Joinable(node, predecessors);
    if (segment < 0) {
      segment = static_cast<int32_t>(drafts_.size());
      drafts_.emplace_back();
      drafts_.back().device = n.device;
      drafts_.back().alone = alone;
      drafts_.back().asynchronous = n.asynchronous;
      if (!alone && predecessors.empty()) {
        if (n.device >= static_cast<int32_t>(roots_.size())) roots_.resize(n.device + 1, -1);
        roots_[n.device] = segment;
      }
    }
    Draft& draft = drafts_[segment];
    segment_of_[node] = segment;
    draft.nodes.push_back(node);
    draft.nanos += n.nanos;
    for (int32_t p : predecessors) {
      if (p == segment) continue;
      draft.level = std::max(draft.level, drafts_[p].level + 1);
      if (std::find(draft.predecessors.begin(), draft.predecessors.end(), p) == draft.predecessors.end()) draft.predecessors.push_back(p);
    }
  }

  SegmentGraph Emit() {
    const int32_t count = static_cast<int32_t>(drafts_.size());
    std::vector<int32_t> by_level(count);
    for (int32_t i = 0; i < count; ++i) by_level[i] = i;
    std::stable_sort(by_level.begin(), by_level.end(), [&](int32_t a, int32_t b) { return drafts_[a].level < drafts_[b].level; });
    std::vector<int32_t> position(count);
    for (int32_t i = 0; i < count; ++i) position[by_level[i]] = i;

    SegmentGraph graph;
    graph.segments.resize(count);
    std::vector<std::vector<int32_t>> successors(count);
    for (int32_t i = 0; i < count; ++i) {
      const Draft& draft = drafts_[by_level[i]];
      Segment& segment = graph.segments[i];
      segment.begin = static_cast<int32_t>(graph.order.size());
      graph.order.insert(graph.order.end(), draft.nodes.begin(), draft.nodes.end());
      segment.end = static_cast<int32_t>(graph.order.size());
      segment.initial_pending = static_cast<int32_t>(draft.predecessors.size());
      segment.device = draft.device;
      segment.estimated_nanos = static_cast<float>(draft.nanos);
      segment.asynchronous = draft.asynchronous;
      for (int32_t p : draft.predecessors) successors[position[p]].push_back(i);
    }
    for (int32_t i = 0; i < count; ++i) {
      graph.segments[i].first_successor = static_cast<int32_t>(graph.successors.size());
      graph.segments[i].num_successors = static_cast<int32_t>(successors[i].size());
      graph.successors.insert(graph.successors.end(), successors[i].begin(), successors[i].end());
    }
    return graph;
  }

  absl::Span<const SegmentNode> nodes_;
  const NodeLists& predecessors_;
  std::vector<int32_t> segment_of_;
  std::vector<Draft> drafts_;
  std::vector<int32_t> roots_;  // per device: the segment of cheap nodes without predecessors
};

}  // namespace

SegmentGraph BuildSegments(absl::Span<const SegmentNode> nodes, const NodeLists& predecessors) {
  return Builder(nodes, predecessors).Build();
}

double ParallelGainNanos(absl::Span<const SegmentNode> nodes, const NodeLists& predecessors, int threads) {
  std::vector<double> finish(nodes.size());
  double total = 0, longest = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    double start = 0;
    for (int32_t p : predecessors[i]) start = std::max(start, finish[p]);
    // Only expensive nodes can be handed to another thread with profit; cheap ones count as if they ran beside.
    const double nanos = nodes[i].nanos >= kExpensiveNodeNanos ? nodes[i].nanos : 0;
    finish[i] = start + nanos;
    total += nanos;
    longest = std::max(longest, finish[i]);
  }
  return total - std::max(longest, total / std::max(1, threads));
}

}  // namespace thalweg
