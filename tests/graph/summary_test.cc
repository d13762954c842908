// Likely inputs and outputs (users' questions A6, A7).
#include "thalweg/graph/summary.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/graph/graph_builder.h"
#include "thalweg/tests/graph/test_ops.h"
#include "thalweg/tests/support/graph_text.h"

namespace thalweg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

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

// A loop with a counter, which no input reaches, and a total that starts with the image; the first round does not show that
// the image reaches what the loop adds up.
Graph Loop(absl::string_view result) {
  constexpr absl::string_view kText = R"(
  image = Placeholder() [dtype=float32]
  limit = Placeholder() [dtype=float32]
  zero = Const() [dtype=float32, value=tensor<float32[]:0>]
  enter_count = Enter(zero) [T=float32, frame_name="f"]
  enter_total = Enter(zero) [T=float32, frame_name="f"]
  enter_image = Enter(image) [T=float32, frame_name="f", is_constant=true]
  enter_limit = Enter(limit) [T=float32, frame_name="f", is_constant=true]
  count = Merge(enter_count, next_count) [T=float32, N=2]
  total = Merge(enter_total, next_total) [T=float32, N=2]
  less = Less(count, enter_limit) [T=float32]
  cond = LoopCond(less)
  switch_count = Switch(count, cond) [T=float32]
  switch_total = Switch(total, cond) [T=float32]
  more = Add(switch_total:1, enter_image) [T=float32]
  next_count = NextIteration(switch_count:1) [T=float32]
  next_total = NextIteration(more) [T=float32]
  count_out = Exit(switch_count:0) [T=float32]
  total_out = Exit(switch_total:0) [T=float32]
)";
  return testing::GraphFromText(testing::TestOps(), absl::StrCat(kText, result));
}

std::vector<std::string> LikelyOutputs(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorSummary& output : SummarizeGraph(graph, InferShapes(graph, {}, nullptr)).outputs) {
    if (output.likely) names.push_back(output.name);
  }
  return names;
}

TEST(Summary, LoopVariablesThatNothingReadsAreResultsIfNothingElseIs) {
  EXPECT_THAT(LikelyOutputs(Loop("result = Neg(total_out) [T=float32]")), ElementsAre("result:0"));
  EXPECT_THAT(LikelyOutputs(Loop("")), UnorderedElementsAre("total_out:0", "count_out:0"));
  const Graph graph = Loop("result = Neg(total_out) [T=float32]");
  const GraphSummary summary = SummarizeGraph(graph, InferShapes(graph, {}, nullptr));
  EXPECT_THAT(summary.outputs[0].reason, HasSubstr("reaches 2 inputs")) << "through the loop";
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
