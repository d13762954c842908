// Segments: statically ordered runs of nodes, the unit of scheduling.
//
// Pure data, no threads and no kernels. A node is a segment of its own if it is asynchronous or expensive; a cheap node
// joins the segment of its predecessors where that makes nothing wait that could already run.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "thalweg/runtime/node_lists.h"

namespace thalweg {

struct Segment {
  int32_t begin = 0;            // nodes [begin, end) of SegmentGraph::order
  int32_t end = 0;
  int32_t initial_pending = 0;  // distinct predecessor segments
  int32_t first_successor = 0;  // into SegmentGraph::successors
  int32_t num_successors = 0;
  int32_t device = 0;
  float estimated_nanos = 0;
  bool asynchronous = false;    // one asynchronous node
};

struct SegmentGraph {
  std::vector<int32_t> order;   // node ids, segment by segment; producers come first
  std::vector<Segment> segments;
  std::vector<int32_t> successors;
};

// What segmentation needs to know of a node.
struct SegmentNode {
  double nanos = 0;
  int32_t device = 0;
  bool asynchronous = false;
};

// `predecessors[i]` lists nodes that come before node i; all are smaller than i (ids are in topological order).
SegmentGraph BuildSegments(absl::Span<const SegmentNode> nodes, const NodeLists& predecessors);

// The time that several threads can save at most: the sum of all costs less the longest path.
double ParallelGainNanos(absl::Span<const SegmentNode> nodes, const NodeLists& predecessors, int threads);

}  // namespace thalweg
