#include "thalweg/graph/prune.h"

#include <gtest/gtest.h>

#include "thalweg/graph/check.h"
#include "thalweg/tests/support/graph_text.h"

namespace thalweg {
namespace {

using testing::GraphFromText;
using testing::TestOps;

constexpr char kChain[] = R"(
  x = Placeholder() [dtype=float32, shape=[2,?]]
  after_x = NoOp(^x)
  a = Neg(x) [T=float32]
  b = Neg(a, ^after_x) [T=float32]
  unused = Neg(b) [T=float32]
)";

class PruneTest : public ::testing::Test {
 protected:
  absl::StatusOr<PrunedGraph> Prune(const char* text, std::vector<std::string> feeds, std::vector<std::string> fetches,
                                    std::vector<std::string> targets = {},
                                    std::vector<std::pair<std::string, std::string>> connections = {}) {
    loaded_ = GraphFromText(TestOps(), text);
    std::vector<Endpoint> feed_ends, fetch_ends;
    std::vector<NodeId> target_ids;
    for (const auto& name : feeds) feed_ends.push_back(*loaded_.ParseEndpoint(name));
    for (const auto& name : fetches) fetch_ends.push_back(*loaded_.ParseEndpoint(name));
    for (const auto& name : targets) target_ids.push_back(loaded_.Find(name));
    std::vector<Connection> connected;
    for (const auto& [from, to] : connections) connected.push_back({*loaded_.ParseEndpoint(from), *loaded_.ParseEndpoint(to)});
    absl::StatusOr<PrunedGraph> pruned = PruneGraph(loaded_, {feed_ends, fetch_ends, target_ids, connected});
    if (pruned.ok()) {
      EXPECT_EQ(CheckGraph(pruned->graph), absl::OkStatus()) << pruned->graph.ToString();
    }
    return pruned;
  }
  Graph loaded_;
};

TEST_F(PruneTest, D19KeepsWhatFetchesReachAndNothingElse) {
  auto pruned = Prune(kChain, {}, {"a"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->graph.ToString(),
            "x = Placeholder() [dtype=float32, shape=[2,?]]\n"
            "a = Neg(x:0) [T=float32]\n"
            "_retval_a_0_0 = _Retval(a:0) [T=float32, index=0]\n");
}

TEST_F(PruneTest, D15D16FedPlaceholderBecomesArgAndItsControlSuccessorsFollow) {
  auto pruned = Prune(kChain, {"x"}, {"b"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->graph.ToString(),
            "_arg_x_0_0 = _Arg() [T=float32, _output_shapes=[[2,?]], index=0]\n"
            "after_x = NoOp(^_arg_x_0_0)\n"
            "a = Neg(_arg_x_0_0:0) [T=float32]\n"
            "b = Neg(a:0, ^after_x) [T=float32]\n"
            "_retval_b_0_0 = _Retval(b:0) [T=float32, index=0]\n");
}

TEST_F(PruneTest, D16FedOrdinaryNodeStaysForItsControlSuccessorsAndOtherOutputs) {
  auto pruned = Prune(R"(
    x = Placeholder() [dtype=float32]
    axis = Placeholder() [dtype=int32]
    s = Split(axis, x) [num_split=2, T=float32]
    after = NoOp(^s)
    y = Add(s:0, s:1, ^after) [T=float32]
  )",
                      {"s:0", "x", "axis"}, {"y"});
  ASSERT_TRUE(pruned.ok());
  const Graph& graph = pruned->graph;
  ASSERT_NE(graph.Find("s"), kNoNode);
  const Node& y = graph.node(graph.Find("y"));
  EXPECT_EQ(graph.EndpointName(y.inputs[0]), "_arg_s_0_0:0");
  EXPECT_EQ(graph.EndpointName(y.inputs[1]), "s:1");
  EXPECT_EQ(graph.EndpointName(graph.node(graph.Find("after")).inputs[0]), "^s");
}

TEST_F(PruneTest, D19FeedCutsTheSearch) {
  auto pruned = Prune(kChain, {"a"}, {"b"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->graph.Find("a"), kNoNode);
  EXPECT_NE(pruned->graph.Find("x"), kNoNode);  // after_x still waits for it
}

TEST_F(PruneTest, FeedsThatNobodyReadsLeaveNoArg) {
  auto pruned = Prune(kChain, {"b", "x"}, {"a"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->graph.Find("_arg_b_0_0"), kNoNode);
  EXPECT_NE(pruned->graph.Find("_arg_x_0_1"), kNoNode);
}

TEST_F(PruneTest, D17D22SameFetchTwiceGivesTwoRetvals) {
  auto pruned = Prune(kChain, {"x"}, {"a", "a:0"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_NE(pruned->graph.Find("_retval_a_0_0"), kNoNode);
  EXPECT_NE(pruned->graph.Find("_retval_a_0_1"), kNoNode);
}

TEST_F(PruneTest, D17FetchOfReferenceIsAValue) {
  auto pruned = Prune("v = VariableV2() [dtype=float32, shape=[]]", {}, {"v"});
  ASSERT_TRUE(pruned.ok());
  const Node& retval = pruned->graph.node(pruned->graph.Find("_retval_v_0_0"));
  EXPECT_EQ(*retval.node_attrs().Get<DType>("T"), DType::kFloat32);
}

TEST_F(PruneTest, L11PreservesFeedsFetchedNodesAndTargets) {
  auto pruned = Prune(kChain, {"x"}, {"a"}, {"after_x"});
  ASSERT_TRUE(pruned.ok());
  for (const char* name : {"_arg_x_0_0", "a", "after_x", "_retval_a_0_0"}) {
    EXPECT_TRUE(pruned->preserve.contains(pruned->graph.Find(name))) << name;
  }
}

TEST_F(PruneTest, TargetThatIsAFedPlaceholderIsItsArg) {
  auto pruned = Prune(kChain, {"x"}, {}, {"x"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->graph.num_nodes(), 1);
}

TEST_F(PruneTest, OldProducersScalarPlaceholderShapeMeansUnknown) {
  Graph loaded = GraphFromText(TestOps(), "x = Placeholder() [dtype=float32, shape=[]]\ny = Neg(x) [T=float32]");
  const std::vector<Endpoint> feeds{{0, 0}}, fetches{{1, 0}};
  loaded.versions.producer = 21;
  auto old = PruneGraph(loaded, {feeds, fetches, {}});
  ASSERT_TRUE(old.ok());
  EXPECT_FALSE(old->graph.node(0).node_attrs().Has("_output_shapes"));
  loaded.versions.producer = 24;
  auto recent = PruneGraph(loaded, {feeds, fetches, {}});
  ASSERT_TRUE(recent.ok());
  EXPECT_TRUE(recent->graph.node(0).node_attrs().Has("_output_shapes"));
}

TEST_F(PruneTest, EveryNodeSaysWhereItComesFrom) {
  auto pruned = Prune(kChain, {"x"}, {"b"});
  ASSERT_TRUE(pruned.ok());
  for (const Node& node : pruned->graph.nodes()) {
    if (node.is("_Retval")) {
      EXPECT_STREQ(node.inserted_by, "fetch");
    } else {
      ASSERT_NE(node.origin, kNoNode) << node.name;
      const std::string original(loaded_.node(node.origin).name);
      EXPECT_NE(std::string(node.name).find(original), std::string::npos) << node.name;
    }
  }
}

TEST_F(PruneTest, D21Errors) {
  auto code = [&](auto feeds, auto fetches) { return Prune(kChain, feeds, fetches).status().code(); };
  using Names = std::vector<std::string>;
  EXPECT_EQ(code(Names{}, Names{}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Names{"x", "x:0"}, Names{"a"}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Names{}, Names{"after_x"}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Names{"^a"}, Names{"b"}), absl::StatusCode::kInvalidArgument);
}

TEST_F(PruneTest, D21WhatIsFedAndFetchedComesStraightFromTheFeed) {
  auto pruned = Prune(kChain, {"x"}, {"x:0"});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  ASSERT_EQ(pruned->graph.num_nodes(), 2);
  EXPECT_EQ(pruned->graph.node(0).op, "_Arg");
  EXPECT_EQ(pruned->graph.node(1).op, "_Retval");
  EXPECT_EQ(pruned->graph.node(1).inputs[0].node, 0);
}

TEST_F(PruneTest, D39AConnectionIsAnIdentityOnTheDeviceOfWhatItReplaces) {
  constexpr char kTwo[] = R"(
    x = Placeholder() [dtype=float32]
    after_x = NoOp(^x) @/device:CPU:1
    y = Neg(x, ^after_x) [T=float32] @/device:CPU:2
    z = Neg(y) [T=float32]
    w = Placeholder() [dtype=float32]
    v = Neg(w) [T=float32]
  )";
  // In place of a placeholder: control edges follow (D16), and the placeholder is gone.
  auto pruned = Prune(kTwo, {"w"}, {"z"}, {}, {{"v", "x"}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(pruned->graph.ToString(),
            "_arg_w_0_0 = _Arg() [T=float32, _output_shapes=[<unknown>], index=0]\n"
            "x/_connected_0 = Identity(v:0) [T=float32]\n"
            "after_x = NoOp(^x/_connected_0) @/device:CPU:1\n"
            "y = Neg(x/_connected_0:0, ^after_x) [T=float32] @/device:CPU:2\n"
            "z = Neg(y:0) [T=float32]\n"
            "v = Neg(_arg_w_0_0:0) [T=float32]\n"
            "_retval_z_0_0 = _Retval(z:0) [T=float32, index=0]\n");
  // In place of another node: what only it needed is not run.
  pruned = Prune(kTwo, {}, {"z"}, {}, {{"v", "y"}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(pruned->graph.ToString(),
            "y/_connected_0 = Identity(v:0) [T=float32] @/device:CPU:2\n"
            "z = Neg(y/_connected_0:0) [T=float32]\n"
            "w = Placeholder() [dtype=float32]\n"
            "v = Neg(w:0) [T=float32]\n"
            "_retval_z_0_0 = _Retval(z:0) [T=float32, index=0]\n");
  // One connection reads what another replaces.
  pruned = Prune(kTwo, {"x"}, {"z"}, {}, {{"x", "w"}, {"v", "y"}});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_NE(pruned->graph.ToString().find("w/_connected_0 = Identity(_arg_x_0_0:0)"), std::string::npos) << pruned->graph.ToString();
}

TEST_F(PruneTest, D39ConnectionsThatCannotBe) {
  const auto message = [this](std::vector<std::pair<std::string, std::string>> connections, std::vector<std::string> feeds = {}) {
    const absl::Status status = Prune(kChain, std::move(feeds), {"b"}, {}, std::move(connections)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_EQ(message({{"b", "a"}}),
            "the connected tensors make a cycle: a/_connected_0 -> b -> a/_connected_0; connect one that does not depend on what it replaces");
  EXPECT_EQ(message({{"a", "a"}}),
            "the connected tensors make a cycle: a/_connected_0 -> a/_connected_0; connect one that does not depend on what it replaces");
  EXPECT_EQ(message({{"x", "a"}}, {"a"}), "tensor a:0 is fed or connected twice");
  EXPECT_EQ(message({{"x", "a"}, {"x", "a"}}), "tensor a:0 is fed or connected twice");
  loaded_ = GraphFromText(TestOps(), kChain);
  const Connection past_the_outputs{{loaded_.Find("x"), 1}, {loaded_.Find("a"), 0}};
  const std::vector<Endpoint> fetches = {{loaded_.Find("b"), 0}};
  EXPECT_EQ(PruneGraph(loaded_, {{}, fetches, {}, {&past_the_outputs, 1}}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(PruneTest, LoopsAreKeptWhole) {
  auto pruned = Prune(R"(
    i = Const() [dtype=int32, value=tensor<int32[]:0>]
    e = Enter(i) [T=int32, frame_name="f"]
    m = Merge(e, n) [T=int32, N=2]
    ten = Const(^m) [dtype=int32, value=tensor<int32[]:10>]
    less = Less(m, ten) [T=int32]
    cond = LoopCond(less)
    s = Switch(m, cond) [T=int32]
    one = Const(^s) [dtype=int32, value=tensor<int32[]:1>]
    inc = Add(s:1, one) [T=int32]
    n = NextIteration(inc) [T=int32]
    x = Exit(s:0) [T=int32]
  )",
                      {}, {"x"});
  ASSERT_TRUE(pruned.ok());
  EXPECT_EQ(pruned->graph.num_nodes(), 12);
}

}  // namespace
}  // namespace thalweg
