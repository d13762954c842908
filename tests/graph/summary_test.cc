// Likely inputs and outputs (users' questions A6, A7).
#include "thalweg/graph/summary.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/graph/graph_builder.h"
#include "thalweg/tests/graph/test_ops.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;

TensorLiteralPtr Floats(std::vector<float> values, Shape shape) {
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  auto literal = std::make_shared<TensorLiteral>();
  literal->dtype = DType::kFloat32;
  literal->shape = std::move(shape);
  literal->content = absl::string_view(reinterpret_cast<const char*>(owner->data()), owner->size() * sizeof(float));
  literal->owner = owner;
  return literal;
}

Graph Model() {
  GraphBuilder b;
  const GraphBuilder::Attrs t = {{"T", DType::kFloat32}};
  b.AddNode("Placeholder", "image", {}, {{"dtype", DType::kFloat32}});
  b.AddNode("Placeholder", "unused", {}, {{"dtype", DType::kFloat32}});
  b.AddConstant("weights", Floats({1, 2, 3, 4, 5, 6}, Shape::Of({2, 3})));
  b.AddConstant("scale", Floats({2}, Shape()));
  b.AddNode("Add", "hidden", {"image", "weights"}, t);
  b.AddNode("Add", "probabilities", {"hidden", "scale"}, t);
  b.AddNode("Neg", "save/leftover", {"hidden"}, t);
  b.AddNode("Neg", "constant_only", {"scale"}, t);
  b.AddNode("NoOp", "init", {"^weights"});
  LoadOptions options;
  options.schemas = &TestOps();
  absl::StatusOr<LoadResult> loaded = LoadGraphBytes(b.SerializeAsGraphDef(), nullptr, "built", options);
  EXPECT_TRUE(loaded.ok() && loaded->status().ok()) << loaded.status();
  return std::move(loaded->graph);
}

TEST(Summary, RanksInputsAndOutputsWithReasons) {
  const Graph graph = Model();
  const GraphSummary summary = SummarizeGraph(graph, InferShapes(graph, {}, nullptr));
  ASSERT_EQ(summary.inputs.size(), 2u);
  EXPECT_EQ(summary.inputs[0].name, "image:0");
  EXPECT_TRUE(summary.inputs[0].likely);
  EXPECT_EQ(summary.inputs[0].kind, "Placeholder");
  EXPECT_FALSE(summary.inputs[1].likely);
  EXPECT_THAT(summary.inputs[1].reason, HasSubstr("nothing reads it"));

  ASSERT_EQ(summary.outputs.size(), 4u);
  EXPECT_EQ(summary.outputs[0].name, "probabilities:0");
  EXPECT_TRUE(summary.outputs[0].likely);
  EXPECT_THAT(summary.outputs[0].reason, HasSubstr("reaches 1 input"));
  for (size_t i = 1; i < summary.outputs.size(); ++i)
    EXPECT_FALSE(summary.outputs[i].likely) << summary.outputs[i].name;
}

TEST(Summary, CountsOpsEdgesAndParameters) {
  const Graph graph = Model();
  const GraphSummary summary = SummarizeGraph(graph, InferShapes(graph, {}, nullptr));
  EXPECT_EQ(summary.nodes, 9);
  EXPECT_EQ(summary.data_edges, 6);
  EXPECT_EQ(summary.control_edges, 1);
  EXPECT_EQ(summary.parameters, 6) << "scalars are no weights";
  EXPECT_EQ(summary.constant_bytes, 28);
  EXPECT_EQ(summary.ops[0], (std::pair<std::string, int>("Add", 2)));
}

TEST(Summary, ProducerTextsAreDates) {
  EXPECT_EQ(ProducerText(27), "producer 27");
  EXPECT_EQ(ProducerText(30), "producer 30 (2019-05-09)");
  EXPECT_EQ(ProducerText(2313), "producer 2313 (2025-08-08)");
}

}  // namespace
}  // namespace thalweg
