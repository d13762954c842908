#include "thalweg/runtime/segments.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "thalweg/runtime/tuning.h"

namespace thalweg {
namespace {

constexpr double kCheap = 100;
constexpr double kExpensive = 10 * kExpensiveNodeNanos;

using Predecessors = std::vector<std::vector<int32_t>>;

NodeLists Lists(const Predecessors& predecessors) {
  NodeLists lists;
  for (const std::vector<int32_t>& list : predecessors) lists.Append(list);
  return lists;
}

// Which segment every node is in, by node id.
std::vector<int32_t> SegmentOf(const SegmentGraph& graph) {
  std::vector<int32_t> out(graph.order.size(), -1);
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    for (int32_t i = graph.segments[s].begin; i < graph.segments[s].end; ++i) out[graph.order[i]] = static_cast<int32_t>(s);
  }
  return out;
}

// Runs the segments by their counters and checks that every node runs once, after all its predecessors.
void CheckExecutable(const SegmentGraph& graph, const Predecessors& predecessors) {
  std::vector<int32_t> pending;
  std::vector<int32_t> ready;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    pending.push_back(graph.segments[s].initial_pending);
    if (pending.back() == 0) ready.push_back(static_cast<int32_t>(s));
  }
  std::vector<bool> ran(predecessors.size(), false);
  size_t count = 0;
  while (!ready.empty()) {
    const Segment& segment = graph.segments[ready.back()];
    ready.pop_back();
    for (int32_t i = segment.begin; i < segment.end; ++i) {
      const int32_t node = graph.order[i];
      ASSERT_FALSE(ran[node]);
      for (int32_t p : predecessors[node]) ASSERT_TRUE(ran[p]) << "node " << node << " ran before " << p;
      ran[node] = true;
      ++count;
    }
    for (int32_t i = 0; i < segment.num_successors; ++i) {
      const int32_t next = graph.successors[segment.first_successor + i];
      if (--pending[next] == 0) ready.push_back(next);
    }
  }
  EXPECT_EQ(count, predecessors.size());
}

TEST(BuildSegments, AChainOfCheapNodesIsOneSegment) {
  const std::vector<SegmentNode> nodes(100, SegmentNode{kCheap, 0, false});
  Predecessors predecessors(100);
  for (int i = 1; i < 100; ++i) predecessors[i] = {i - 1};
  const SegmentGraph graph = BuildSegments(nodes, Lists(predecessors));
  EXPECT_EQ(graph.segments.size(), 1u);
  CheckExecutable(graph, predecessors);
}

TEST(BuildSegments, ExpensiveNodesOfAFanOutStandApart) {
  std::vector<SegmentNode> nodes = {{kCheap, 0, false}, {kExpensive, 0, false}, {kExpensive, 0, false}, {kCheap, 0, false}};
  const Predecessors predecessors = {{}, {0}, {0}, {1, 2}};
  const SegmentGraph graph = BuildSegments(nodes, Lists(predecessors));
  const std::vector<int32_t> segment = SegmentOf(graph);
  EXPECT_NE(segment[1], segment[2]);
  EXPECT_NE(segment[3], segment[1]) << "joining one branch would make it wait for the other";
  EXPECT_NE(segment[3], segment[2]);
  CheckExecutable(graph, predecessors);
}

TEST(BuildSegments, ACheapTailFollowsItsExpensiveNode) {
  const std::vector<SegmentNode> nodes = {{kExpensive, 0, false}, {kCheap, 0, false}, {kCheap, 0, false}};
  const Predecessors predecessors = {{}, {0}, {1}};
  EXPECT_EQ(BuildSegments(nodes, Lists(predecessors)).segments.size(), 1u);
}

TEST(BuildSegments, DevicesAndAsynchronousNodesCut) {
  const std::vector<SegmentNode> nodes = {{kCheap, 0, false}, {kCheap, 1, false}, {kCheap, 1, true}, {kCheap, 1, false}};
  const Predecessors predecessors = {{}, {0}, {1}, {2}};
  const SegmentGraph graph = BuildSegments(nodes, Lists(predecessors));
  EXPECT_EQ(graph.segments.size(), 4u);
  EXPECT_TRUE(graph.segments[SegmentOf(graph)[2]].asynchronous);
  CheckExecutable(graph, predecessors);
}

// A18: whatever the graph, every node runs exactly once and after its predecessors.
TEST(BuildSegments, RandomGraphsExecute) {
  std::mt19937 random(17);
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 1 + static_cast<int>(random() % 120);
    std::vector<SegmentNode> nodes(n);
    Predecessors predecessors(n);
    for (int i = 0; i < n; ++i) {
      nodes[i].nanos = random() % 3 == 0 ? kExpensive : kCheap;
      nodes[i].device = static_cast<int32_t>(random() % 3);
      nodes[i].asynchronous = random() % 9 == 0;
      std::set<int32_t> chosen;
      for (int k = static_cast<int>(random() % 4); k > 0 && i > 0; --k) chosen.insert(static_cast<int32_t>(random() % i));
      predecessors[i].assign(chosen.begin(), chosen.end());
    }
    CheckExecutable(BuildSegments(nodes, Lists(predecessors)), predecessors);
  }
}

TEST(ParallelGain, CountsOnlyWorkWorthHandingOver) {
  const Predecessors fan = {{}, {0}, {0}};
  EXPECT_DOUBLE_EQ(ParallelGainNanos(std::vector<SegmentNode>{{kCheap, 0, false}, {kExpensive, 0, false}, {kExpensive, 0, false}}, Lists(fan), 2),
                   kExpensive);
  EXPECT_DOUBLE_EQ(ParallelGainNanos(std::vector<SegmentNode>(3, {kCheap, 0, false}), Lists(fan), 2), 0);
  const Predecessors chain = {{}, {0}, {1}};
  EXPECT_DOUBLE_EQ(ParallelGainNanos(std::vector<SegmentNode>(3, {kExpensive, 0, false}), Lists(chain), 8), 0);
}

}  // namespace
}  // namespace thalweg
