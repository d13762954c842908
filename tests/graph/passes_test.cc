#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "thalweg/graph/check.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/passes/pass_list.h"
#include "thalweg/graph/passes/pass_runner.h"
#include "thalweg/tests/support/fake_kernels.h"
#include "thalweg/tests/support/graph_text.h"

namespace thalweg {
namespace {

using testing::FakeKernels;
using testing::GraphFromText;
using testing::TestDevices;
using testing::TestOps;

TensorLiteralPtr IntLiteral(std::vector<int32_t> values, Shape shape) {
  auto bytes =
      std::make_shared<std::string>(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int32_t));
  auto literal = std::make_shared<TensorLiteral>();
  literal->dtype = DType::kInt32;
  literal->shape = std::move(shape);
  literal->content = *bytes;
  literal->owner = bytes;
  return literal;
}

// Knows Add and Neg of int32 scalars, and Split of an int32 vector into scalars.
class FakeEvaluator : public ConstantEvaluator {
 public:
  absl::StatusOr<std::vector<TensorLiteralPtr>> Evaluate(const Graph& graph, const Node& node,
                                                         absl::Span<const TensorLiteralPtr> inputs,
                                                         int64_t max_bytes) const override {
    ++calls;
    std::vector<int64_t> first;
    for (const TensorLiteralPtr& input : inputs) first.push_back(input->ToInt64s()->at(0));
    if (node.is("Add"))
      return std::vector<TensorLiteralPtr>{IntLiteral({static_cast<int32_t>(first[0] + first[1])}, {})};
    if (node.is("Neg")) return std::vector<TensorLiteralPtr>{IntLiteral({static_cast<int32_t>(-first[0])}, {})};
    if (node.is("Split")) {
      std::vector<TensorLiteralPtr> parts;
      const std::vector<int64_t> values = *inputs[1]->ToInt64s();
      for (int64_t value : values) parts.push_back(IntLiteral({static_cast<int32_t>(value)}, Shape::Of({1})));
      return parts;
    }
    return absl::UnimplementedError("no kernel");
  }
  mutable int calls = 0;
};

class PassesTest : public ::testing::Test {
 protected:
  // The graph after pruning for `fetches` and one pass ("" for all of them), without the fetch nodes.
  std::string Run(const std::string& pass, const std::string& text, std::vector<std::string> fetches,
                  std::vector<std::string> feeds = {}) {
    Graph loaded = GraphFromText(TestOps(), text);
    request_.fetches.clear();
    request_.feeds.clear();
    for (const auto& name : fetches) {
      const Endpoint e = *loaded.ParseEndpoint(name);
      if (e.is_control())
        request_.targets.push_back(e.node);
      else
        request_.fetches.push_back(e);
    }
    for (const auto& name : feeds) request_.feeds.push_back(*loaded.ParseEndpoint(name));
    request_.evaluator = use_evaluator_ ? &evaluator_ : nullptr;
    std::vector<Pass> passes;
    for (const Pass& p : AllPasses()) {
      if (pass.empty() || pass == p.name) passes.push_back(p);
    }
    EXPECT_FALSE(passes.empty()) << pass;
    absl::StatusOr<PrunedGraph> result = PrepareAndOptimize([&] { return PruneGraph(loaded, {request_.feeds, request_.fetches, request_.targets}); }, request_,
                                                        passes, &reports_);
    if (!result.ok()) return std::string(result.status().message());
    for (const PassReport& report : reports_) EXPECT_EQ(report.error, "");
    EXPECT_EQ(CheckGraph(result->graph), absl::OkStatus());
    ExpectIdempotent(*result, passes);
    std::string out;
    for (const Node& node : result->graph.nodes()) {
      if (node.removed || node.is("_Retval")) continue;
      std::vector<std::string> inputs;
      for (Endpoint input : node.inputs) inputs.push_back(result->graph.EndpointName(input));
      absl::StrAppend(&out, out.empty() ? "" : "; ", node.name, "=", node.op, "(", absl::StrJoin(inputs, ","), ")");
    }
    result_ = *std::move(result);
    return out;
  }

  // H23: on its own output a pass changes nothing.
  void ExpectIdempotent(const PrunedGraph& once, const std::vector<Pass>& passes) {
    Graph graph = once.graph;
    LazyShapes shapes(graph);
    PassContext context;
    context.request = &request_;
    context.preserve = once.preserve;
    for (const PlacementPin& pin : request_.placement.pins) context.preserve.insert(graph.Find(pin.pattern));
    context.shapes = &shapes;
    if (passes.size() > 1 || !request_.optimize) return;  // one pass may make work for another
    for (const Pass& pass : passes) {
      absl::StatusOr<bool> changed = pass.run(graph, context);
      EXPECT_TRUE(changed.ok() && !*changed) << pass.name << " changed its own output";
    }
  }

  std::vector<NodeId> OriginsOf(const char* node) {
    const Node& n = result_.graph.node(result_.graph.Find(node));
    std::vector<NodeId> origins = n.also == nullptr ? std::vector<NodeId>() : *n.also;
    origins.insert(origins.begin(), n.origin);
    return origins;
  }

  CompileRequest request_;
  FakeEvaluator evaluator_;
  bool use_evaluator_ = true;
  std::vector<PassReport> reports_;
  PrunedGraph result_;
};

TEST_F(PassesTest, IdentityChainsVanishAndTheirProducerStandsForThem) {
  EXPECT_EQ(Run("identity",
                "x = Neg(p) [T=float32]\np = Placeholder() [dtype=float32]\n"
                "a = Identity(x) [T=float32]\nb = StopGradient(a) [T=float32]\nc = Snapshot(b) [T=float32]\ny = Neg(c) "
                "[T=float32]",
                {"y"}),
            "x=Neg(p:0); p=Placeholder(); y=Neg(x:0)");
  EXPECT_EQ(OriginsOf("x"), (std::vector<NodeId>{0, 2, 3, 4}));
}

TEST_F(PassesTest, L11FetchedAndTargetedIdentitiesStay) {
  const char* text = "p = Placeholder() [dtype=float32]\na = Identity(p) [T=float32]\ny = Neg(a) [T=float32]";
  EXPECT_EQ(Run("identity", text, {"y", "a"}), "p=Placeholder(); a=Identity(p:0); y=Neg(a:0)");
  EXPECT_EQ(Run("identity", text, {"y", "^a"}), "p=Placeholder(); a=Identity(p:0); y=Neg(a:0)");
}

TEST_F(PassesTest, IdentityWithControlInputsStays) {
  EXPECT_EQ(
      Run("identity",
          "p = Placeholder() [dtype=float32]\nn = NoOp()\na = Identity(p, ^n) [T=float32]\ny = Neg(a) [T=float32]",
          {"y"}),
      "p=Placeholder(); n=NoOp(); a=Identity(p:0,^n); y=Neg(a:0)");
}

TEST_F(PassesTest, ControlReadersOfAnIdentityFollowItsProducer) {
  EXPECT_EQ(
      Run("identity",
          "p = Placeholder() [dtype=float32]\na = Identity(p) [T=float32]\ny = Placeholder(^a) [dtype=float32]", {"y"}),
      "p=Placeholder(); y=Placeholder(^p)");
}

TEST_F(PassesTest, L1PivotsOfASwitchStay) {
  EXPECT_EQ(
      Run("identity",
          "d = Placeholder() [dtype=float32]\np = Placeholder() [dtype=bool]\ns = Switch(d, p) [T=float32]\n"
          "pivot = Identity(s:1) [T=float32]\nc = Const(^pivot) [dtype=float32, value=tensor<float32[]:1>]\n"
          "data = Identity(s:1) [T=float32]\ny = Add(data, c) [T=float32]",
          {"y"}),
      "d=Placeholder(); p=Placeholder(); s=Switch(d:0,p:0); pivot=Identity(s:1); c=Const(^pivot); y=Add(s:1,c:0)");
}

TEST_F(PassesTest, ReadsOfReferencesStay) {
  EXPECT_EQ(
      Run("identity", "v = VariableV2() [dtype=float32, shape=[]]\nr = Identity(v) [T=float32]\ny = Neg(r) [T=float32]",
          {"y"}),
      "v=VariableV2(); r=Identity(v:0); y=Neg(r:0)");
}

TEST_F(PassesTest, F7FoldsChainsOfConstants) {
  EXPECT_EQ(
      Run("constant_folding",
          "a = Const() [dtype=int32, value=tensor<int32[]:2>]\nb = Const() [dtype=int32, value=tensor<int32[]:3>]\n"
          "c = Add(a, b) [T=int32]\nd = Neg(c) [T=int32]\np = Placeholder() [dtype=int32]\ny = Mul(p, d) [T=int32]",
          {"y"}),
      "d=Const(); p=Placeholder(); y=Mul(p:0,d:0)");
  const Node& d = result_.graph.node(result_.graph.Find("d"));
  EXPECT_EQ((*d.node_attrs().Get<TensorLiteralPtr>("value"))->ToInt64s()->at(0), -5);
  EXPECT_EQ(OriginsOf("d"), (std::vector<NodeId>{3, 2, 0, 1}));
}

TEST_F(PassesTest, F9ControlInputsOfEverythingFoldedArePassedOn) {
  EXPECT_EQ(Run("constant_folding",
                "n = NoOp()\nm = NoOp()\na = Const(^n) [dtype=int32, value=tensor<int32[]:2>]\n"
                "c = Add(a, a, ^m) [T=int32]\np = Placeholder() [dtype=int32]\ny = Mul(p, c) [T=int32]",
                {"y"}),
            "n=NoOp(); m=NoOp(); c=Const(^n,^m); p=Placeholder(); y=Mul(p:0,c:0)");
}

TEST_F(PassesTest, H24FoldedNodeWithControlReaderIsGoneAndOrderIsKept) {
  EXPECT_EQ(
      Run("constant_folding",
          "n = NoOp()\nx = Const(^n) [dtype=int32, value=tensor<int32[2]:2,3>]\n"
          "axis = Const() [dtype=int32, value=tensor<int32[]:0>]\n"
          "s = Split(axis, x) [num_split=2, T=int32]\ny = Placeholder(^s) [dtype=int32]\nz = Add(s:1, y) [T=int32]",
          {"z"}),
      "n=NoOp(); y=Placeholder(^s/_folded); z=Add(s/_folded/1:0,y:0); s/_folded=Const(^n); s/_folded/1=Const(^n)");
}

TEST_F(PassesTest, F7LeavesFetchesStateControlFlowAndFailures) {
  const char* constants =
      "a = Const() [dtype=int32, value=tensor<int32[1]:2>]\nt = Const() [dtype=bool, value=tensor<bool[]:1>]\n";
  for (const char* rest :
       {"y = Neg(a) [T=int32]", "r = RandomUniform(a) [T=int32, dtype=float32]\ny = Identity(r) [T=float32]",
        "s = Switch(a, t) [T=int32]\ny = Identity(s:1) [T=int32]",
        "m = Mul(a, a) [T=int32]\ny = Identity(m) [T=int32]"}) {
    const std::string text = absl::StrCat(constants, rest);
    const std::string plain = Run("control_edges", text, {"y"});
    EXPECT_EQ(Run("constant_folding", text, {"y"}), plain);
  }
}

TEST_F(PassesTest, F8MetadataOfKnownShapesFoldsAndKeepsTheOrder) {
  const std::string text =
      "p = Placeholder() [dtype=float32, shape=[2,3]]\nx = Neg(p) [T=float32]\ns = Shape(x) [T=float32]\nr = Rank(x) "
      "[T=float32]\n"
      "n = Size(x) [T=float32, out_type=int64]\na = Neg(s) [T=int32]\nb = Neg(r) [T=int32]\nc = Neg(n) [T=int64]";
  EXPECT_EQ(Run("constant_folding", text, {"a", "b", "c"}),
            "p=Placeholder(); x=Neg(p:0); s=Const(^x); r=Const(^x); n=Const(^x); a=Neg(s:0); b=Neg(r:0); c=Neg(n:0)");
  const auto value = [&](const char* node) {
    return *(*result_.graph.node(result_.graph.Find(node)).node_attrs().Get<TensorLiteralPtr>("value"))->ToInt64s();
  };
  EXPECT_EQ(value("s"), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(value("r"), (std::vector<int64_t>{2}));
  EXPECT_EQ(value("n"), (std::vector<int64_t>{6}));
}

TEST_F(PassesTest, F8UnknownDimensionsLeaveOnlyTheRank) {
  const std::string text =
      "p = Placeholder() [dtype=float32, shape=[?,3]]\ns = Shape(p) [T=float32]\nr = Rank(p) [T=float32]\n"
      "a = Neg(s) [T=int32]\nb = Neg(r) [T=int32]";
  EXPECT_EQ(Run("constant_folding", text, {"a", "b"}, {"p"}),
            "_arg_p_0_0=_Arg(); s=Shape(_arg_p_0_0:0); r=Const(); a=Neg(s:0); b=Neg(r:0)");
}

TEST_F(PassesTest, F8ShapeOfASwitchOutputStays) {
  EXPECT_TRUE(absl::StrContains(
      Run("constant_folding",
          "d = Placeholder() [dtype=float32, shape=[2]]\np = Placeholder() [dtype=bool]\nw = Switch(d, p) [T=float32]\n"
          "s = Rank(w:1) [T=float32]\ny = Neg(s) [T=int32]",
          {"y"}),
      "s=Rank(w:1)"));
}

TEST_F(PassesTest, ReshapeToTheSameShapeAndTransposeBack) {
  const std::string start =
      "p = Placeholder() [dtype=float32, shape=[2,3]]\nsame = Const() [dtype=int32, value=tensor<int32[2]:2,3>]\n"
      "other = Const() [dtype=int32, value=tensor<int32[2]:3,2>]\nswap = Const() [dtype=int32, "
      "value=tensor<int32[2]:1,-2>]\n"
      "keep = Const() [dtype=int32, value=tensor<int32[2]:0,1>]\n";
  const auto run = [&](const std::string& rest) {
    return Run("arithmetic", start + rest + "\ny = Neg(a) [T=float32]", {"y"});
  };
  EXPECT_EQ(run("a = Reshape(p, same) [T=float32]"), "p=Placeholder(); y=Neg(p:0)");
  EXPECT_TRUE(absl::StrContains(run("a = Reshape(p, other) [T=float32]"), "y=Neg(a:0)"));
  EXPECT_EQ(run("b = Transpose(p, swap) [T=float32]\na = Transpose(b, swap) [T=float32]"),
            "p=Placeholder(); y=Neg(p:0)");
  EXPECT_EQ(run("a = Transpose(p, keep) [T=float32]"), "p=Placeholder(); y=Neg(p:0)");
  EXPECT_TRUE(absl::StrContains(run("a = Transpose(p, swap) [T=float32]"), "y=Neg(a:0)"));
}

constexpr char kFoldable[] =
    "a = Const() [dtype=int32, value=tensor<int32[]:2>]\nc = Neg(a) [T=int32]\np = Placeholder() [dtype=int32]\n"
    "y = Mul(p, c) [T=int32]";

TEST_F(PassesTest, WithoutEvaluatorNothingIsFolded) {
  use_evaluator_ = false;
  EXPECT_EQ(Run("constant_folding", kFoldable, {"y"}), "a=Const(); c=Neg(a:0); p=Placeholder(); y=Mul(p:0,c:0)");
}

TEST_F(PassesTest, OptimizingCanBeSwitchedOff) {
  request_.optimize = false;
  EXPECT_EQ(Run("", kFoldable, {"y"}), "a=Const(); c=Neg(a:0); p=Placeholder(); y=Mul(p:0,c:0)");
  EXPECT_TRUE(reports_.empty());
}

TEST_F(PassesTest, F2F3MergesEqualNodesTransitively) {
  EXPECT_EQ(Run("common_subexpressions",
                "p = Placeholder() [dtype=float32]\na = Neg(p) [T=float32]\nb = Neg(p) [T=float32]\n"
                "c = Mul(a, p) [T=float32]\nd = Mul(p, b) [T=float32]\ny = Sub(c, d) [T=float32]",
                {"y"}),
            "p=Placeholder(); a=Neg(p:0); c=Mul(a:0,p:0); y=Sub(c:0,c:0)");
  EXPECT_EQ(OriginsOf("c"), (std::vector<NodeId>{3, 4}));
}

TEST_F(PassesTest, F3WhatDiffersStaysApart) {
  const char* text =
      "p = Placeholder() [dtype=float32]\nq = Placeholder() [dtype=float32]\nn = NoOp()\n"
      "a = Neg(p) [T=float32]\nb = Neg(p, ^n) [T=float32]\nc = Neg(p) [T=float32] @/device:CPU:1\nd = Sub(p, q) "
      "[T=float32]\n"
      "e = Sub(q, p) [T=float32]\nf = MatMul(p, q) [T=float32]\ng = MatMul(p, q) [T=float32, transpose_a=true]\n"
      "r1 = Const() [dtype=int32, value=tensor<int32[1]:2>]\nu = RandomUniform(r1) [T=int32, dtype=float32]\n"
      "v = RandomUniform(r1) [T=int32, dtype=float32]\n";
  std::string all(text);
  std::vector<std::string> fetches;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "u", "v"}) {
    absl::StrAppend(&all, "i", name, " = Neg(", name, ") [T=float32]\n");
    fetches.push_back(absl::StrCat("i", name));
  }
  EXPECT_EQ(Run("common_subexpressions", all, fetches), Run("identity", all, fetches));
}

TEST_F(PassesTest, F4H26PlaceholdersAreNeverMerged) {
  EXPECT_EQ(
      Run("common_subexpressions",
          "p = Placeholder() [dtype=float32]\nq = Placeholder() [dtype=float32]\ny = Sub(p, q) [T=float32]", {"y"}),
      "p=Placeholder(); q=Placeholder(); y=Sub(p:0,q:0)");
}

TEST_F(PassesTest, L11FetchedDuplicateStaysButMayServeOthers) {
  EXPECT_EQ(Run("common_subexpressions",
                "p = Placeholder() [dtype=float32]\na = Neg(p) [T=float32]\nb = Neg(p) [T=float32]\ny = Identity(b) "
                "[T=float32]",
                {"a", "y"}),
            "p=Placeholder(); a=Neg(p:0); y=Identity(a:0)");
}

TEST_F(PassesTest, PlacementFilesKeepDuplicatesApart) {
  request_.placement.fixed = {{"a", "CPU:0"}, {"b", "CPU:1"}};
  EXPECT_EQ(Run("common_subexpressions",
                "p = Placeholder() [dtype=float32]\na = Neg(p) [T=float32]\nb = Neg(p) [T=float32]\ny = Sub(a, b) "
                "[T=float32]",
                {"y"}),
            "p=Placeholder(); a=Neg(p:0); b=Neg(p:0); y=Sub(a:0,b:0)");
}

TEST_F(PassesTest, PinnedNodesStay) {
  request_.placement.pins = {{"a", "CPU:0"}};
  EXPECT_EQ(Run("identity",
                "p = Placeholder() [dtype=float32]\na = Identity(p) [T=float32]\nb = Identity(a) [T=float32]\ny = "
                "Neg(b) [T=float32]",
                {"y"}),
            "p=Placeholder(); a=Identity(p:0); y=Neg(a:0)");
}

TEST_F(PassesTest, ArithmeticOnIntegers) {
  const char* constants =
      "p = Placeholder() [dtype=int32, shape=[2,3]]\nzero = Const() [dtype=int32, value=tensor<int32[]:0>]\n"
      "one = Const() [dtype=int32, value=tensor<int32[]:1>]\n";
  for (const char* expression : {"Add(p, zero)", "AddV2(zero, p)", "Sub(p, zero)", "Mul(p, one)", "Mul(one, p)"}) {
    EXPECT_EQ(Run("arithmetic", absl::StrCat(constants, "a = ", expression, " [T=int32]\ny = Neg(a) [T=int32]"), {"y"}),
              "p=Placeholder(); y=Neg(p:0)")
        << expression;
  }
  for (const char* expression : {"Sub(zero, p)", "Add(p, one)", "Mul(p, zero)"}) {
    EXPECT_TRUE(absl::StrContains(
        Run("arithmetic", absl::StrCat(constants, "a = ", expression, " [T=int32]\ny = Neg(a) [T=int32]"), {"y"}),
        "y=Neg(a:0)"))
        << expression;
  }
}

TEST_F(PassesTest, ArithmeticLeavesFloatsAndBroadcastsAndHeldBackConstants) {
  const char* constants =
      "p = Placeholder() [dtype=float32]\nq = Placeholder() [dtype=int32]\nn = NoOp()\n"
      "zero = Const() [dtype=float32, value=tensor<float32[]:0>]\nrow = Const() [dtype=int32, "
      "value=tensor<int32[2]:0,0>]\n"
      "held = Const(^n) [dtype=int32, value=tensor<int32[]:0>]\n";
  for (const auto& [expression, type] : std::vector<std::pair<const char*, const char*>>{
           {"Add(p, zero)", "float32"}, {"AddV2(q, row)", "int32"}, {"Sub(q, held)", "int32"}}) {
    const std::string text =
        absl::StrCat(constants, "a = ", expression, " [T=", type, "]\ny = Shape(a) [T=", type, "]");
    EXPECT_TRUE(absl::StrContains(Run("arithmetic", text, {"y"}), "y=Shape(a:0)")) << expression;
  }
}

TEST_F(PassesTest, DoubleNegation) {
  EXPECT_EQ(
      Run("arithmetic",
          "p = Placeholder() [dtype=float32]\na = Neg(p) [T=float32]\nb = Neg(a) [T=float32]\nc = Neg(b) [T=float32]\n"
          "y = Identity(c) [T=float32]",
          {"y"}),
      "p=Placeholder(); c=Neg(p:0); y=Identity(c:0)");
}

TEST_F(PassesTest, CastThereAndBack) {
  auto run = [&](const char* from, const char* to) {
    return Run("arithmetic",
               absl::StrCat("p = Placeholder() [dtype=", from, "]\na = Cast(p) [SrcT=", from, ", DstT=", to,
                            "]\nb = Cast(a) [SrcT=", to, ", DstT=", from, "]\ny = Neg(b) [T=", from, "]"),
               {"y"});
  };
  EXPECT_EQ(run("int32", "int64"), "p=Placeholder(); y=Neg(p:0)");
  EXPECT_EQ(run("uint8", "int16"), "p=Placeholder(); y=Neg(p:0)");
  EXPECT_TRUE(absl::StrContains(run("int64", "int32"), "y=Neg(b:0)"));
  EXPECT_TRUE(absl::StrContains(run("uint32", "int32"), "y=Neg(b:0)"));
  EXPECT_TRUE(absl::StrContains(run("int32", "float32"), "y=Neg(b:0)"));
}

TEST_F(PassesTest, ControlEdgesThatDataEdgesImply) {
  EXPECT_EQ(
      Run("control_edges",
          "p = Placeholder() [dtype=float32]\nn = NoOp()\na = Neg(p, ^p, ^n, ^n) [T=float32]\ny = Neg(a) [T=float32]",
          {"y"}),
      "p=Placeholder(); n=NoOp(); a=Neg(p:0,^n); y=Neg(a:0)");
}

constexpr char kLoop[] = R"(
  zero = Const() [dtype=int32, value=tensor<int32[]:0>]
  enter = Enter(zero) [T=int32, frame_name="f"]
  merge = Merge(enter, next) [T=int32, N=2]
  m = Identity(merge) [T=int32]
  ten = Const(^m) [dtype=int32, value=tensor<int32[]:10>]
  less = Less(m, ten) [T=int32]
  cond = LoopCond(less)
  switch = Switch(m, cond) [T=int32]
  pivot = Identity(switch:1) [T=int32]
  one = Const(^pivot) [dtype=int32, value=tensor<int32[]:1>]
  two = Const(^pivot) [dtype=int32, value=tensor<int32[]:2>]
  three = Add(one, two) [T=int32]
  inc = Add(pivot, three) [T=int32]
  also = Add(pivot, three) [T=int32]
  sum = Add(inc, also) [T=int32]
  out = Identity(sum) [T=int32]
  next = NextIteration(out) [T=int32]
  exit = Exit(switch:0) [T=int32]
  y = Neg(exit) [T=int32]
)";

TEST_F(PassesTest, LoopsAreRewrittenInsideTheirFrames) {
  EXPECT_EQ(
      Run("", kLoop, {"y"}),
      "zero=Const(); enter=Enter(zero:0); merge=Merge(enter:0,next:0); ten=Const(^merge); less=Less(merge:0,ten:0); "
      "cond=LoopCond(less:0); switch=Switch(merge:0,cond:0); pivot=Identity(switch:1); three=Const(^pivot); "
      "inc=Add(pivot:0,three:0); sum=Add(inc:0,inc:0); next=NextIteration(sum:0); exit=Exit(switch:0); y=Neg(exit:0)");
}

TEST_F(PassesTest, H27OrderOfNodesInTheFileDoesNotMatter) {
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(kLoop, '\n', absl::SkipWhitespace())) lines.emplace_back(line);
  std::mt19937 random(5);
  for (int i = 0; i < 100; ++i) {
    std::shuffle(lines.begin(), lines.end(), random);
    Run("", absl::StrJoin(lines, "\n"), {"y"});
    int live = 0;
    for (const Node& node : result_.graph.nodes()) live += !node.removed;
    EXPECT_EQ(live, 15);
  }
}

TEST_F(PassesTest, PassesCanBeSwitchedOffByName) {
  request_.disabled_passes = {"identity"};
  Run("", kLoop, {"y"});
  EXPECT_NE(result_.graph.Find("m"), kNoNode);
  for (const PassReport& report : reports_) EXPECT_NE(report.name, "identity");
  EXPECT_EQ(reports_.size(), AllPasses().size() - 1);
}

absl::StatusOr<bool> BreaksTheGraph(Graph& graph, const PassContext&) {
  for (NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (graph.node(id).is("Neg")) graph.RemoveNode(id);
  }
  return true;
}
absl::StatusOr<bool> GivesUp(Graph& graph, const PassContext&) {
  BreaksTheGraph(graph, {}).IgnoreError();
  return absl::InternalError("gave up");
}

TEST_F(PassesTest, FailingPassesAreUndoneAndNamed) {
  const Graph loaded = GraphFromText(
      TestOps(),
      "p = Placeholder() [dtype=float32]\na = Identity(p) [T=float32]\nb = Neg(a) [T=float32]\ny = Neg(b) [T=float32]");
  request_.fetches = {{3, 0}};
  const Pass passes[] = {AllPasses()[0], {"breaks", BreaksTheGraph}, {"gives_up", GivesUp}};
  auto result = PrepareAndOptimize([&] { return PruneGraph(loaded, {request_.feeds, request_.fetches, request_.targets}); }, request_,
                                                        passes, &reports_);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(CheckGraph(result->graph), absl::OkStatus());
  EXPECT_EQ(result->graph.Find("a"), kNoNode);
  EXPECT_NE(result->graph.Find("b"), kNoNode);
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_EQ(reports_[0].error, "");
  EXPECT_TRUE(absl::StrContains(reports_[1].error, "removed node")) << reports_[1].error;
  EXPECT_EQ(reports_[2].error, "gave up");
}

TEST_F(PassesTest, CompileRunsAllStages) {
  const Graph loaded = GraphFromText(TestOps(), kLoop);
  FakeKernels kernels;
  request_.fetches = {{loaded.Find("y"), 0}};
  request_.devices = TestDevices({"CPU:0", "CPU:1", "CPU:2"});
  request_.kernels = &kernels;
  request_.evaluator = &evaluator_;
  request_.placement.policy = "scatter~4";
  absl::StatusOr<CompiledGraph> compiled = CompileGraph(loaded, request_);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_FALSE(compiled->transfers.empty());
  EXPECT_EQ(compiled->placement.records.size(), static_cast<size_t>(compiled->graph.num_nodes()));
  for (NodeId id = 0; id < compiled->graph.num_nodes(); ++id) {
    const Node& node = compiled->graph.node(id);
    EXPECT_FALSE(node.removed);
    EXPECT_EQ(node.device, compiled->placement.records[id].device);
    EXPECT_FALSE(ExplainPlacement(compiled->graph, compiled->placement, request_.devices, id).empty());
    for (Endpoint input : node.inputs) EXPECT_TRUE(input.node < id || node.is("Merge")) << node.name;
  }
  for (size_t i = 0; i < compiled->transfers.size(); ++i) {
    const Transfer& transfer = compiled->transfers[i];
    EXPECT_EQ(transfer.pair, static_cast<int>(i));
    EXPECT_TRUE(compiled->graph.node(transfer.send).is("_Send"));
    EXPECT_TRUE(compiled->graph.node(transfer.recv).is("_Recv"));
    EXPECT_FALSE(transfer.cause.empty());
  }
}

}  // namespace
}  // namespace thalweg
