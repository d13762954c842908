#include "thalweg/graph/passes/fuse_elementwise.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "thalweg/ops/register_all.h"
#include "thalweg/tests/support/fake_kernels.h"
#include "thalweg/tests/support/graph_text.h"
#include "thalweg/tests/support/pass_steps.h"

namespace thalweg {
namespace {

using testing::FakeKernels;
using testing::GraphFromText;

class FuseElementwiseTest : public ::testing::Test {
 protected:
  // The nodes other than placeholders after the pass: "name=Op(inputs)[ops; operands]". What is asked for is read by nodes
  // that are fetched.
  std::string Run(const std::string& text, std::vector<std::string> read, std::vector<std::string> fetched = {}) {
    std::string readers;
    for (const std::string& name : read) absl::StrAppend(&readers, "\nread_", name, " = Identity(", name, ") [T=float32]");
    Graph loaded = GraphFromText(BuiltinOps().schemas, absl::StrCat(text, readers));
    CompileRequest request;
    request.devices = devices_;
    request.kernels = &kernels_;
    for (const std::string& name : read) request.fetches.push_back(*loaded.ParseEndpoint(absl::StrCat("read_", name)));
    for (const std::string& name : fetched) request.fetches.push_back(*loaded.ParseEndpoint(name));
    const Pass pass[] = {{"fuse_elementwise", FuseElementwise}};
    result_ = testing::StepAfter(loaded, request, pass);
    std::vector<std::string> lines;
    for (const Node& node : result_.graph.nodes()) {
      if (node.removed || node.is("_Retval") || node.is("Placeholder") || node.is("Const") || absl::StartsWith(node.name, "read_")) continue;
      std::string line = absl::StrCat(node.name, "=", testing::OpWithInputs(result_.graph, node));
      if (node.is("_FusedElementwise")) {
        const NodeAttrs attrs = node.node_attrs();
        absl::StrAppend(&line, "[", absl::StrJoin(attrs.GetOr<std::vector<std::string>>("ops", {}), ","), "; ",
                        absl::StrJoin(attrs.GetOr<std::vector<int64_t>>("operands", {}), ","), "]");
      }
      lines.push_back(line);
    }
    return absl::StrJoin(lines, "; ");
  }

  FakeKernels kernels_;
  std::vector<PlacementDevice> devices_ = {{*DeviceName::ParseLocalOrFull("CPU:0"), "cpu", true}};
  PrunedGraph result_;
};

constexpr char kInputs[] =
    "x = Placeholder() [dtype=float32, shape=[4,100]]\ny = Placeholder() [dtype=float32, shape=[4,100]]\n"
    "row = Placeholder() [dtype=float32, shape=[100]]\ncolumn = Placeholder() [dtype=float32, shape=[4,1]]\n"
    "one = Const() [dtype=float32, value=tensor<float32[]:2>]\nany = Placeholder() [dtype=float32]\n";

TEST_F(FuseElementwiseTest, AChainBecomesOneNode) {
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32]\nb = Tanh(a) [T=float32]\nc = Mul(b, x) [T=float32]"), {"c"}),
            "c=_FusedElementwise(x:0)[Exp,Tanh,Mul; 0,-1,-2,0]");
  const Node& fused = result_.graph.node(result_.graph.Find("c"));
  ASSERT_NE(fused.also, nullptr);
  EXPECT_EQ(fused.also->size(), 2u);
}

TEST_F(FuseElementwiseTest, ATreeBecomesOneNode) {
  const std::string cell =
      "f1 = AddV2(f, one) [T=float32]\nkeep = Sigmoid(f1) [T=float32]\nold = Mul(keep, c) [T=float32]\n"
      "gate = Sigmoid(i) [T=float32]\nnew = Tanh(j) [T=float32]\nput = Mul(gate, new) [T=float32]\nsum = AddV2(old, put) [T=float32]\n";
  std::string inputs = kInputs;
  for (const char* name : {"f", "c", "i", "j"}) absl::StrAppend(&inputs, name, " = Placeholder() [dtype=float32, shape=[1,256]]\n");
  Run(inputs + cell, {"sum"});
  const Node& fused = result_.graph.node(result_.graph.Find("sum"));
  EXPECT_EQ(fused.op, "_FusedElementwise");
  EXPECT_EQ(fused.num_data_inputs, 5);
  EXPECT_EQ(result_.graph.Find("keep"), kNoNode);
}

TEST_F(FuseElementwiseTest, WhatOthersReadStays) {
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32]\nb = Tanh(a) [T=float32]\nc = Neg(b) [T=float32]"), {"c", "a"}),
            "a=Exp(x:0); c=_FusedElementwise(a:0)[Tanh,Neg; 0,-1]");
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32]\nb = Tanh(a) [T=float32]"), {"b"}, {"a"}), "a=Exp(x:0); b=Tanh(a:0)");
}

TEST_F(FuseElementwiseTest, SeveralReadersInsideAreNoHindrance) {
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32]\nb = Tanh(a) [T=float32]\nc = Mul(a, b) [T=float32]"), {"c"}),
            "c=_FusedElementwise(x:0)[Exp,Tanh,Mul; 0,-1,-1,-2]");
}

TEST_F(FuseElementwiseTest, ControlEdgesKeepNodesApart) {
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32]\nb = Tanh(a, ^y) [T=float32]\nc = Neg(b) [T=float32]"), {"c"}),
            "a=Exp(x:0); b=Tanh(a:0,^y); c=Neg(b:0)");
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32]\nb = Tanh(a) [T=float32]\nd = Identity(y, ^a) [T=float32]"), {"b", "d"}),
            "a=Exp(x:0); b=Tanh(a:0); d=Identity(y:0,^a)");
}

TEST_F(FuseElementwiseTest, OperandsThatAreSpread) {
  const auto fused_with = [&](const std::string& operand) {
    return Run(absl::StrCat(kInputs, "narrow = Placeholder() [dtype=float32, shape=[4]]\na = Mul(x, ", operand,
                            ") [T=float32]\nb = Neg(a) [T=float32]"), {"b"});
  };
  EXPECT_EQ(fused_with("one"), "b=_FusedElementwise(x:0,one:0)[Mul,Neg; 0,1,-1]");
  EXPECT_EQ(fused_with("row"), "b=_FusedElementwise(x:0,row:0)[Mul,Neg; 0,1,-1]");
  EXPECT_EQ(fused_with("column"), "b=_FusedElementwise(x:0,column:0)[Mul,Neg; 0,1,-1]");
  EXPECT_EQ(fused_with("any"), "a=Mul(x:0,any:0); b=Neg(a:0)") << "nobody knows its shape";
  const std::string short_rows =
      "w = Placeholder() [dtype=float32, shape=[100,4]]\nv = Placeholder() [dtype=float32, shape=[4]]\n"
      "a = Mul(w, v) [T=float32]\nb = Neg(a) [T=float32]";
  EXPECT_EQ(Run(short_rows, {"b"}), "a=Mul(w:0,v:0); b=Neg(a:0)");
}

TEST_F(FuseElementwiseTest, OneShapeAndOneType) {
  // What is smaller than the result would be computed more than once.
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(row) [T=float32]\nb = Mul(x, a) [T=float32]\nc = Neg(b) [T=float32]"), {"c"}),
            "a=Exp(row:0); c=_FusedElementwise(x:0,a:0)[Mul,Neg; 0,1,-1]");
  const std::string halves = "h = Placeholder() [dtype=half, shape=[4]]\na = Exp(h) [T=half]\nb = Neg(a) [T=half]\n"
                             "c = Cast(b) [SrcT=half, DstT=float32]";
  EXPECT_EQ(Run(halves, {"c"}), "a=Exp(h:0); b=Neg(a:0); c=Cast(b:0)") << "halves are rounded between the ops";
  EXPECT_EQ(Run("u = Placeholder() [dtype=float32]\na = Exp(u) [T=float32]\nb = Neg(a) [T=float32]", {"b"}), "a=Exp(u:0); b=Neg(a:0)");
}

TEST_F(FuseElementwiseTest, OpenDimensionsThatAreTheSame) {
  EXPECT_EQ(Run("u = Placeholder() [dtype=float32, shape=[?,8]]\na = Exp(u) [T=float32]\nb = Mul(a, u) [T=float32]", {"b"}),
            "b=_FusedElementwise(u:0)[Exp,Mul; 0,-1,0]");
  EXPECT_EQ(Run("u = Placeholder() [dtype=float32, shape=[?,8]]\nv = Placeholder() [dtype=float32, shape=[?,8]]\n"
                "a = Exp(u) [T=float32]\nb = Mul(a, v) [T=float32]", {"b"}),
            "a=Exp(u:0); b=Mul(a:0,v:0)") << "one of the two may be 1";
}

TEST_F(FuseElementwiseTest, GroupsHaveAGreatestSize) {
  std::string text = absl::StrCat(kInputs, "n0 = Exp(x) [T=float32]\n");
  for (int i = 1; i < 40; ++i) absl::StrAppend(&text, "n", i, " = Neg(n", i - 1, ") [T=float32]\n");
  Run(text, {"n39"});
  int fused = 0;
  for (const Node& node : result_.graph.nodes()) {
    if (node.removed || !node.is("_FusedElementwise")) continue;
    ++fused;
    EXPECT_LE(node.node_attrs().GetOr<std::vector<std::string>>("ops", {}).size(), 16u);
  }
  EXPECT_EQ(fused, 3);
  // A sum of twelve: no node has more than eight arguments.
  text = kInputs;
  for (int i = 0; i < 12; ++i) absl::StrAppend(&text, "p", i, " = Placeholder() [dtype=float32, shape=[4]]\n");
  absl::StrAppend(&text, "s1 = Add(p0, p1) [T=float32]\n");
  for (int i = 2; i < 12; ++i) absl::StrAppend(&text, "s", i, " = Add(s", i - 1, ", p", i, ") [T=float32]\n");
  Run(text, {"s11"});
  for (const Node& node : result_.graph.nodes()) {
    if (!node.removed && node.is("_FusedElementwise")) {
      EXPECT_LE(node.num_data_inputs, 8);
    }
  }
}

TEST_F(FuseElementwiseTest, DevicesKeepNodesApart) {
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32] @/device:CPU:0\nb = Tanh(a) [T=float32]"), {"b"}), "a=Exp(x:0); b=Tanh(a:0)");
  // A device that has the ops but not the fused one must not be lost.
  devices_.push_back({*DeviceName::ParseLocalOrFull("GPU:0"), "sim", false});
  kernels_.Without("sim", "_FusedElementwise");
  EXPECT_EQ(Run(absl::StrCat(kInputs, "a = Exp(x) [T=float32]\nb = Tanh(a) [T=float32]"), {"b"}), "a=Exp(x:0); b=Tanh(a:0)");
}

}  // namespace
}  // namespace thalweg
