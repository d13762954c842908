#include "thalweg/graph/passes/fuse_bias_activation.h"

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

// Node lines that the cases share.
constexpr char kConv[] =
    "x = Placeholder() [dtype=float32, shape=[2,8,8,3]]\nw = Placeholder() [dtype=float32, shape=[3,3,3,4]]\n"
    "b = Placeholder() [dtype=float32, shape=[4]]\nside = Placeholder() [dtype=float32, shape=[2,8,8,4]]\n"
    "conv = Conv2D(x, w) [T=float32, padding=\"SAME\"]\n";

class FuseBiasActivationTest : public ::testing::Test {
 protected:
  // The nodes other than placeholders after the pass: "name=Op(inputs)[fused_ops]".
  std::string Run(const std::string& text, std::vector<std::string> fetches, std::vector<std::string> fetched_directly = {}) {
    // What is fetched stays as it is (L11), so each name asked for is read by a node that is fetched instead.
    std::string readers;
    for (const std::string& name : fetches) absl::StrAppend(&readers, "\nread_", name, " = Neg(", name, ") [T=float32]");
    Graph loaded = GraphFromText(BuiltinOps().schemas, absl::StrCat(text, readers));
    for (NodeId id = 0; id < loaded.num_nodes(); ++id) {
      Node& node = loaded.mutable_node(id);
      if (node.schema != nullptr && node.schema->FindAttr("strides") != nullptr) {
        node.attrs.Set("strides", MakeListAttr(std::vector<int64_t>{1, 1, 1, 1}));
      }
    }
    CompileRequest request;
    request.devices = devices_;
    request.kernels = &kernels_;
    for (const std::string& name : fetches) request.fetches.push_back(*loaded.ParseEndpoint(absl::StrCat("read_", name)));
    for (const std::string& name : fetched_directly) request.fetches.push_back(*loaded.ParseEndpoint(name));
    const Pass pass[] = {{"fuse_bias_activation", FuseBiasActivation}};
    result_ = testing::StepAfter(loaded, request, pass);
    std::vector<std::string> lines;
    for (const Node& node : result_.graph.nodes()) {
      if (node.removed || node.is("_Retval") || node.is("Placeholder") || absl::StartsWith(node.name, "read_")) continue;
      const auto fused = node.node_attrs().GetOr<std::vector<std::string>>("fused_ops", {});
      lines.push_back(absl::StrCat(node.name, "=", testing::OpWithInputs(result_.graph, node),
                                   fused.empty() ? "" : "[", absl::StrJoin(fused, ","), fused.empty() ? "" : "]"));
    }
    return absl::StrJoin(lines, "; ");
  }

  FakeKernels kernels_;
  std::vector<PlacementDevice> devices_ = {{*DeviceName::ParseLocalOrFull("CPU:0"), "cpu", true}};
  PrunedGraph result_;
};

TEST_F(FuseBiasActivationTest, F13ConvolutionBiasActivation) {
  for (const char* act : {"Relu", "Relu6", "Elu", "LeakyRelu", "Sigmoid", "Tanh"}) {
    const std::string text =
        absl::StrCat(kConv, "bias = BiasAdd(conv, b) [T=float32]\nact = ", act, "(bias) [T=float32]");
    EXPECT_EQ(Run(text, {"act"}), absl::StrCat("act=_FusedConv2D(x:0,w:0,b:0)[BiasAdd,", act, "]"));
  }
}

TEST_F(FuseBiasActivationTest, SigmoidTimesItsOperand) {
  const std::string bias = "bias = BiasAdd(conv, b) [T=float32]\n", gate = "gate = Sigmoid(bias) [T=float32]\n";
  for (const char* product : {"y = Mul(bias, gate) [T=float32]", "y = Mul(gate, bias) [T=float32]"}) {
    EXPECT_EQ(Run(absl::StrCat(kConv, bias, gate, product), {"y"}), "y=_FusedConv2D(x:0,w:0,b:0)[BiasAdd,Swish]");
  }
  ASSERT_NE(result_.graph.node(result_.graph.Find("y")).also, nullptr);
  EXPECT_EQ(*result_.graph.node(result_.graph.Find("y")).also, (std::vector<NodeId>{4, 5, 6}));
  // Another factor, another reader of the sigmoid, of what it reads, a square, a fetched sigmoid.
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, gate, "y = Mul(side, gate) [T=float32]"), {"y"}),
            "gate=_FusedConv2D(x:0,w:0,b:0)[BiasAdd,Sigmoid]; y=Mul(side:0,gate:0)");
  const std::string kept = "bias=_FusedConv2D(x:0,w:0,b:0)[BiasAdd]; gate=Sigmoid(bias:0); y=Mul(bias:0,gate:0)";
  const std::string product = "y = Mul(bias, gate) [T=float32]\n";
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, gate, product, "z = Neg(gate) [T=float32]"), {"y", "z"}), kept + "; z=Neg(gate:0)");
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, gate, product, "z = Neg(bias) [T=float32]"), {"y", "z"}), kept + "; z=Neg(bias:0)");
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, gate, product), {"y"}, {"gate"}), kept);
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, "y = Mul(bias, bias) [T=float32]"), {"y"}),
            "bias=_FusedConv2D(x:0,w:0,b:0)[BiasAdd]; y=Mul(bias:0,bias:0)");
}

TEST_F(FuseBiasActivationTest, KeepsProvenanceAndAttributes) {
  Run(absl::StrCat(kConv, "bias = BiasAdd(conv, b) [T=float32]\nact = LeakyRelu(bias) [T=float32, alpha=0.5]"),
      {"act"});
  const Node& fused = result_.graph.node(result_.graph.Find("act"));
  EXPECT_EQ(fused.origin, 6);
  ASSERT_NE(fused.also, nullptr);
  EXPECT_EQ(*fused.also, (std::vector<NodeId>{4, 5}));
  EXPECT_EQ(*fused.node_attrs().Get<std::string>("padding"), "SAME");
  EXPECT_EQ(*fused.node_attrs().Get<float>("leakyrelu_alpha"), 0.5f);
  EXPECT_EQ(*fused.node_attrs().Get<int64_t>("num_args"), 1);
}

TEST_F(FuseBiasActivationTest, AddOfAVectorIsABias) {
  EXPECT_EQ(Run(absl::StrCat(kConv, "sum = AddV2(conv, b) [T=float32]\nact = Relu(sum) [T=float32]"), {"act"}),
            "act=_FusedConv2D(x:0,w:0,b:0)[BiasAdd,Relu]");
  EXPECT_EQ(Run(absl::StrCat(kConv, "sum = Add(b, conv) [T=float32]"), {"sum"}),
            "sum=_FusedConv2D(x:0,w:0,b:0)[BiasAdd]");
}

TEST_F(FuseBiasActivationTest, F14BatchNormAddRelu) {
  const std::string vectors =
      "s = Placeholder() [dtype=float32, shape=[4]]\nm = Placeholder() [dtype=float32, shape=[4]]\n"
      "v = Placeholder() [dtype=float32, shape=[4]]\n";
  const std::string norm =
      "bn = FusedBatchNormV3(conv, s, b, m, v) [T=float32, U=float32, is_training=false, epsilon=0.25]\n";
  EXPECT_EQ(Run(absl::StrCat(kConv, vectors, norm, "sum = AddV2(side, bn) [T=float32]\nact = Relu(sum) [T=float32]"),
                {"act"}),
            "act=_FusedConv2D(x:0,w:0,s:0,b:0,m:0,v:0,side:0)[FusedBatchNorm,Add,Relu]");
  EXPECT_EQ(*result_.graph.node(result_.graph.Find("act")).node_attrs().Get<float>("epsilon"), 0.25f);
  // The normalisation may be the last of the chain, but not if its other outputs are wanted or it trains.
  EXPECT_EQ(Run(absl::StrCat(kConv, vectors, norm, "y = Neg(bn) [T=float32]"), {"y"}),
            "bn=_FusedConv2D(x:0,w:0,s:0,b:0,m:0,v:0)[FusedBatchNorm]; y=Neg(bn:0)");
  EXPECT_EQ(Run(absl::StrCat(kConv, vectors, norm, "y = Neg(bn) [T=float32]\nz = Neg(bn:1) [T=float32]"), {"y", "z"}),
            "conv=Conv2D(x:0,w:0); bn=FusedBatchNormV3(conv:0,s:0,b:0,m:0,v:0); y=Neg(bn:0); z=Neg(bn:1)");
  EXPECT_EQ(Run(absl::StrCat(kConv, vectors,
                             "bn = FusedBatchNormV3(conv, s, b, m, v) [T=float32, U=float32]\ny = Neg(bn) [T=float32]"),
                {"y"}),
            "conv=Conv2D(x:0,w:0); bn=FusedBatchNormV3(conv:0,s:0,b:0,m:0,v:0); y=Neg(bn:0)");
}

TEST_F(FuseBiasActivationTest, F16MatMul) {
  const std::string text =
      "a = Placeholder() [dtype=float32, shape=[2,3]]\nw = Placeholder() [dtype=float32, shape=[4,3]]\n"
      "b = Placeholder() [dtype=float32, shape=[4]]\nmm = MatMul(a, w) [T=float32, transpose_b=true]\n"
      "bias = BiasAdd(mm, b) [T=float32]\nact = Tanh(bias) [T=float32]";
  EXPECT_EQ(Run(text, {"act"}), "act=_FusedMatMul(a:0,w:0,b:0)[BiasAdd,Tanh]");
  EXPECT_TRUE(*result_.graph.node(result_.graph.Find("act")).node_attrs().Get<bool>("transpose_b"));
}

TEST_F(FuseBiasActivationTest, F17DepthwiseWithExplicitPadding) {
  const std::string text =
      "x = Placeholder() [dtype=float32, shape=[2,8,8,3]]\nw = Placeholder() [dtype=float32, shape=[3,3,3,1]]\n"
      "b = Placeholder() [dtype=float32, shape=[3]]\nconv = DepthwiseConv2dNative(x, w) [T=float32, padding=\"SAME\"]\n"
      "bias = BiasAdd(conv, b) [T=float32]\nact = Relu6(bias) [T=float32]";
  EXPECT_EQ(Run(text, {"act"}), "act=_FusedDepthwiseConv2dNative(x:0,w:0,b:0)[BiasAdd,Relu6]");
}

TEST_F(FuseBiasActivationTest, F20WhatMustStay) {
  const std::string bias = "bias = BiasAdd(conv, b) [T=float32]\n", act = "act = Relu(bias) [T=float32]\n";
  // L11: a fetched node is not touched.
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, act), {"act"}, {"bias"}),
            "conv=Conv2D(x:0,w:0); bias=BiasAdd(conv:0,b:0); act=Relu(bias:0)");
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, act), {"act", "conv"}),
            "conv=Conv2D(x:0,w:0); bias=BiasAdd(conv:0,b:0); act=Relu(bias:0)");
  // Two readers.
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, act, "y = Neg(bias) [T=float32]"), {"act", "y"}),
            "bias=_FusedConv2D(x:0,w:0,b:0)[BiasAdd]; act=Relu(bias:0); y=Neg(bias:0)");
  // Control edges.
  EXPECT_EQ(Run(absl::StrCat(kConv, "n = NoOp()\nbias = BiasAdd(conv, b, ^n) [T=float32]\n"), {"bias"}),
            "conv=Conv2D(x:0,w:0); n=NoOp(); bias=BiasAdd(conv:0,b:0,^n)");
  EXPECT_EQ(Run(absl::StrCat(kConv, bias, "y = Neg(side, ^conv) [T=float32]\n"), {"bias", "y"}),
            "conv=Conv2D(x:0,w:0); bias=BiasAdd(conv:0,b:0); y=Neg(side:0,^conv)");
  // Two devices asked for.
  EXPECT_EQ(Run(absl::StrCat(kConv, "bias = BiasAdd(conv, b) [T=float32] @/device:CPU:1\n"), {"bias"}),
            "conv=Conv2D(x:0,w:0); bias=BiasAdd(conv:0,b:0)");
}

TEST_F(FuseBiasActivationTest, AddNeedsEqualShapes) {
  const std::string text = absl::StrCat(kConv, "one = Placeholder() [dtype=float32, shape=[1,8,8,4]]\n",
                                        "bias = BiasAdd(conv, b) [T=float32]\nsum = AddV2(bias, one) [T=float32]");
  EXPECT_EQ(Run(text, {"sum"}), "bias=_FusedConv2D(x:0,w:0,b:0)[BiasAdd]; sum=AddV2(bias:0,one:0)");
}

TEST_F(FuseBiasActivationTest, NoDeviceIsLost) {
  devices_.push_back({*DeviceName::ParseLocalOrFull("GPU:0"), "sim", false});
  kernels_.Without("sim", "_FusedConv2D");
  EXPECT_EQ(Run(absl::StrCat(kConv, "bias = BiasAdd(conv, b) [T=float32]"), {"bias"}),
            "conv=Conv2D(x:0,w:0); bias=BiasAdd(conv:0,b:0)");
  kernels_.Without("sim", "Conv2D").Without("sim", "BiasAdd");
  EXPECT_EQ(Run(absl::StrCat(kConv, "bias = BiasAdd(conv, b) [T=float32]"), {"bias"}),
            "bias=_FusedConv2D(x:0,w:0,b:0)[BiasAdd]");
}

}  // namespace
}  // namespace thalweg
