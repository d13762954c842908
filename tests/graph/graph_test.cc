// The graph as data: names, edges, orders, copies.
#include "thalweg/graph/graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/tests/graph/test_ops.h"
#include "thalweg/graph/cycles.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A node without declaration: enough where only names and edges matter.
NodeId AddPlain(Graph& graph, const std::string& name, const std::string& op, std::vector<Endpoint> inputs,
                int outputs = 1) {
  Node node;
  node.name = name;
  node.op = op;
  node.num_data_inputs = 0;
  for (const Endpoint input : inputs) node.num_data_inputs += !input.is_control();
  node.inputs.assign(inputs.begin(), inputs.end());
  node.output_types.assign(outputs, DType::kFloat32);
  return graph.AddNode(std::move(node));
}

TEST(Graph, ToStringShowsEveryPart) {
  const Graph graph = LoadGood(
      "node { name: 'y' op: 'Add' input: 'x' input: 's:1' input: '^go' device: '/device:CPU:0' attr { key: 'T' value { "
      "type: DT_FLOAT } } }\n" +
      PlaceholderText("x", "DT_FLOAT", "dim { size: 2 } dim { size: -1 }") + PlaceholderText("p", "DT_BOOL") +
      "node { name: 's' op: 'Switch' input: 'x' input: 'p' attr { key: 'T' value { type: DT_FLOAT } } } node { name: "
      "'go' op: 'NoOp' }");
  EXPECT_EQ(graph.ToString(), R"(y = Add(x:0, s:1, ^go) [T=float32] @/device:CPU:0
x = Placeholder() [dtype=float32, shape=[2,?]]
p = Placeholder() [dtype=bool]
s = Switch(x:0, p:0) [T=float32]
go = NoOp()
)");
}

TEST(Graph, FindForgetsRemovedNodes) {
  Graph graph;
  const NodeId a = AddPlain(graph, "a", "NoOp", {});
  EXPECT_EQ(graph.Find("a"), a);
  EXPECT_EQ(graph.Find("b"), kNoNode);
  graph.RemoveNode(a);
  EXPECT_EQ(graph.Find("a"), kNoNode);
  const NodeId again = AddPlain(graph, "a", "NoOp", {});
  EXPECT_EQ(graph.Find("a"), again);
}

TEST(Graph, FindWorksForManyNames) {
  Graph graph;
  for (int i = 0; i < 5000; ++i) AddPlain(graph, "node_" + std::to_string(i), "NoOp", {});
  for (int i = 0; i < 5000; i += 2) graph.RemoveNode(i);
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(graph.Find("node_" + std::to_string(i)), i % 2 == 0 ? kNoNode : i);
}

TEST(Graph, DerivedNamesAreUnique) {
  Graph graph;
  AddPlain(graph, "a", "NoOp", {});
  AddPlain(graph, "a/1", "NoOp", {});
  const NodeId first = graph.AddDerivedNode("a", Node(), "pass");
  const NodeId second = graph.AddDerivedNode("a", Node(), "pass");
  const NodeId fresh = graph.AddDerivedNode("b", Node(), "pass");
  EXPECT_EQ(graph.node(first).name, "a/2");
  EXPECT_EQ(graph.node(second).name, "a/3");
  EXPECT_EQ(graph.node(fresh).name, "b");
  EXPECT_STREQ(graph.node(first).inserted_by, "pass");
}

TEST(Graph, ConsumersListEveryUse) {
  Graph graph;
  const NodeId a = AddPlain(graph, "a", "Split", {}, 2);
  const NodeId b = AddPlain(graph, "b", "Add", {{a, 1}, {a, 0}});
  const NodeId c = AddPlain(graph, "c", "NoOp", {{a, kControlPort}}, 0);
  const Consumers consumers = graph.BuildConsumers();
  ASSERT_EQ(consumers.of(a).size(), 3u);
  EXPECT_EQ(consumers.of(a)[0].node, b);
  EXPECT_EQ(consumers.of(a)[0].port, 1);
  EXPECT_EQ(consumers.of(a)[1].input, 1);
  EXPECT_EQ(consumers.of(a)[2].node, c);
  EXPECT_EQ(consumers.of(a)[2].port, kControlPort);
  EXPECT_TRUE(consumers.of(c).empty());

  const NodeId d = AddPlain(graph, "d", "Split", {}, 1);
  graph.RedirectUses(consumers, {a, 1}, {d, 0});
  EXPECT_EQ(graph.node(b).inputs[0], (Endpoint{d, 0}));
  EXPECT_EQ(graph.node(b).inputs[1], (Endpoint{a, 0}));
}

TEST(Graph, ControlEdgesAreAddedOnce) {
  Graph graph;
  const NodeId a = AddPlain(graph, "a", "NoOp", {}, 0);
  const NodeId b = AddPlain(graph, "b", "NoOp", {}, 0);
  graph.AddControlEdge(a, b);
  graph.AddControlEdge(a, b);
  EXPECT_EQ(graph.node(b).inputs.size(), 1u);
}

TEST(Graph, OrderKeepsTopologicalIdsAndSortsOthers) {
  Graph sorted;
  for (int i = 0; i < 5; ++i)
    AddPlain(sorted, std::to_string(i), "Neg", i == 0 ? std::vector<Endpoint>{} : std::vector<Endpoint>{{i - 1, 0}});
  EXPECT_THAT(*sorted.TopologicalOrder(), ElementsAre(0, 1, 2, 3, 4));
  Graph reversed;
  for (int i = 0; i < 5; ++i)
    AddPlain(reversed, std::to_string(i), "Neg", i == 4 ? std::vector<Endpoint>{} : std::vector<Endpoint>{{i + 1, 0}});
  EXPECT_THAT(*reversed.TopologicalOrder(), ElementsAre(4, 3, 2, 1, 0));
}

TEST(Graph, OrderLeavesOutLoopBackEdges) {
  Graph graph;
  AddPlain(graph, "m", "Merge", {{1, 0}}, 2);
  AddPlain(graph, "n", "NextIteration", {{0, 0}});
  EXPECT_THAT(*graph.TopologicalOrder(), ElementsAre(0, 1));
  EXPECT_TRUE(FindCycles(graph).empty());
}

TEST(Graph, Rule21CyclesAreNamedNodeByNode) {
  Graph graph;
  AddPlain(graph, "in", "Neg", {});
  AddPlain(graph, "a", "Add", {{0, 0}, {3, 0}});
  AddPlain(graph, "b", "Neg", {{1, 0}});
  AddPlain(graph, "c", "Neg", {{2, 0}});
  AddPlain(graph, "self", "NoOp", {{4, kControlPort}}, 0);
  EXPECT_EQ(graph.TopologicalOrder().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(graph.TopologicalOrder().status().message()), HasSubstr("a -> b -> c -> a"));
  const auto cycles = FindCycles(graph);
  ASSERT_EQ(cycles.size(), 2u);
  EXPECT_THAT(cycles[0], ElementsAre(1, 2, 3));
  EXPECT_THAT(cycles[1], ElementsAre(4));
}

TEST(Graph, Rule25OrderOfALongChainNeedsNoStack) {
  Graph graph;
  constexpr int kNodes = 300'000;
  graph.Reserve(kNodes);
  for (int i = 0; i < kNodes; ++i) {
    AddPlain(graph, "n" + std::to_string(i), "Neg",
             i + 1 == kNodes ? std::vector<Endpoint>{} : std::vector<Endpoint>{{i + 1, 0}});
  }
  const auto order = graph.TopologicalOrder();
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(order->front(), kNodes - 1);
  graph.mutable_node(kNodes - 1).inputs = {{0, 0}};
  graph.mutable_node(kNodes - 1).num_data_inputs = 1;
  EXPECT_EQ(FindCycles(graph).size(), 1u);
  EXPECT_LT(CycleToString(graph, FindCycles(graph)[0]).size(), 1000u);
}

TEST(Graph, CompactedDropsRemovedNodesAndRenumbers) {
  Graph graph;
  AddPlain(graph, "last", "Neg", {{2, 0}});
  AddPlain(graph, "gone", "Neg", {{2, 0}});
  AddPlain(graph, "first", "Const", {});
  graph.RemoveNode(1);
  std::vector<NodeId> new_ids;
  absl::StatusOr<Graph> compact = graph.Compacted(&new_ids);
  ASSERT_TRUE(compact.ok()) << compact.status();
  EXPECT_EQ(compact->ToString(), "first = Const()\nlast = Neg(first:0)\n");
  EXPECT_THAT(new_ids, ElementsAre(1, kNoNode, 0));
  graph.RemoveNode(2);
  EXPECT_EQ(graph.Compacted().status().code(), absl::StatusCode::kInternal) << "a removed node is still read";
}

TEST(Graph, CopiesKeepTheirNamesAlive) {
  Graph copy;
  {
    Graph original;
    AddPlain(original, "a_name_that_is_longer_than_any_small_string", "NoOp", {});
    copy = original;
    AddPlain(original, "only_in_the_original", "NoOp", {});
  }
  AddPlain(copy, "b", "NoOp", {});
  EXPECT_EQ(copy.ToString(), "a_name_that_is_longer_than_any_small_string = NoOp()\nb = NoOp()\n");
  EXPECT_EQ(copy.Find("only_in_the_original"), kNoNode);
}

TEST(Graph, ParseEndpoint) {
  Graph graph;
  const NodeId x = AddPlain(graph, "x", "Switch", {}, 2);
  const NodeId go = AddPlain(graph, "scope/go", "NoOp", {}, 0);
  EXPECT_EQ(*graph.ParseEndpoint("x"), (Endpoint{x, 0}));
  EXPECT_EQ(*graph.ParseEndpoint(" x:1 "), (Endpoint{x, 1}));
  EXPECT_EQ(*graph.ParseEndpoint("^x"), (Endpoint{x, kControlPort}));
  EXPECT_EQ(*graph.ParseEndpoint("scope/go"), (Endpoint{go, kControlPort}));
  for (const char* bad : {"", "^", "x:", "x:-1", "x:one", ":0", "^x:0", "x:99999999999", "x:2", "scope/go:0"}) {
    EXPECT_EQ(graph.ParseEndpoint(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(graph.ParseEndpoint("y").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(graph.ParseEndpoint("other/go").status().message()), HasSubstr("did you mean 'scope/go'"));
}

TEST(Graph, NearestNamesPutsFewEditsFirst) {
  Graph graph;
  for (const char* name : {"double", "dobule_more", "triple", "other/duoble", "dubble"})
    AddPlain(graph, name, "NoOp", {});
  EXPECT_THAT(graph.NearestNames("duoble"), ElementsAre("double", "dubble", "other/duoble"));
  EXPECT_EQ(graph.NearestNames("DOUBLE")[0], "double");
  EXPECT_TRUE(graph.NearestNames("something_else_entirely").empty());
}

}  // namespace
}  // namespace thalweg
