// Loops as `inspect` lists them: which nodes run in which frame.
#include "thalweg/tools/graph_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace thalweg::tools {
namespace {

// Appends a node with data inputs only.
NodeId Add(Graph* graph, const char* op, const char* name, std::vector<NodeId> inputs, const char* frame = nullptr) {
  Node node;
  node.name = name;
  node.op = op;
  for (const NodeId id : inputs) node.inputs.push_back({id, 0});
  node.num_data_inputs = static_cast<int32_t>(inputs.size());
  node.output_types = {DType::kFloat32};
  if (frame != nullptr) node.attrs.Set("frame_name", std::string(frame));
  return graph->AddNode(std::move(node));
}

// An outer loop around (enter, body, an inner loop of two nodes, a node after it), then a node outside.
TEST(GraphFactsTest, FindsNestedLoops) {
  GraphView view;
  Graph& graph = view.loaded.graph;
  const NodeId start = Add(&graph, "Const", "start", {});
  const NodeId enter = Add(&graph, "Enter", "enter", {start}, "outer");
  const NodeId body = Add(&graph, "Neg", "body", {enter});
  const NodeId inner = Add(&graph, "Enter", "inner_enter", {body}, "inner");
  const NodeId inner_exit = Add(&graph, "Exit", "inner_exit", {inner});
  const NodeId after = Add(&graph, "Neg", "after", {inner_exit});
  const NodeId exit = Add(&graph, "Exit", "exit", {after});
  Add(&graph, "Neg", "outside", {exit});

  const GraphFacts facts = GatherFacts(view);
  ASSERT_EQ(facts.frames.size(), 2u);
  EXPECT_EQ(facts.frames[0].name, "outer");
  EXPECT_EQ(facts.frames[0].depth, 1);
  EXPECT_EQ(facts.frames[0].nodes, 4);
  EXPECT_EQ(facts.frames[1].name, "inner");
  EXPECT_EQ(facts.frames[1].depth, 2);
  EXPECT_EQ(facts.frames[1].nodes, 2);
}

TEST(GraphFactsTest, EntersOfOneNameInOneFrameAreOneLoop) {
  GraphView view;
  Graph& graph = view.loaded.graph;
  const NodeId start = Add(&graph, "Const", "start", {});
  Add(&graph, "Enter", "a", {start}, "loop");
  Add(&graph, "Enter", "b", {start}, "loop");
  const GraphFacts facts = GatherFacts(view);
  ASSERT_EQ(facts.frames.size(), 1u);
  EXPECT_EQ(facts.frames[0].nodes, 2);
}

}  // namespace
}  // namespace thalweg::tools
