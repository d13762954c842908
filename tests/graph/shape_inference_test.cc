// Shapes, literals and values over whole graphs.
#include "thalweg/graph/shape_inference.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "thalweg/tests/graph/test_ops.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string ShapeOf(const Graph& graph, const InferredShapes& shapes, const char* tensor) {
  return shapes.output(*graph.ParseEndpoint(tensor)).ToString();
}

const std::string kX = PlaceholderText("x", "DT_FLOAT", "dim { size: -1 } dim { size: 3 }");

std::string AddText(const char* name, const char* a, const char* b) {
  return std::string("node { name: '") + name + "' op: 'Add' input: '" + a + "' input: '" + b +
         "' attr { key: 'T' value { type: DT_FLOAT } } }\n";
}

TEST(ShapeInference, UnknownDimsBecomeSymbolsThatFollowTheValue) {
  const Graph graph = LoadGood(kX + PlaceholderText("w", "DT_FLOAT", "dim { size: -1 } dim { size: 3 }") +
                               UnaryText("y", "Neg", "x") + AddText("z", "x", "y"));
  const InferredShapes shapes = InferShapes(graph, {}, nullptr);
  const int64_t rows = shapes.output({0, 0}).dim(0);
  EXPECT_TRUE(IsSymbol(rows));
  EXPECT_EQ(shapes.output(*graph.ParseEndpoint("y")).dim(0), rows);
  EXPECT_EQ(shapes.output(*graph.ParseEndpoint("z")).dim(0), rows);
  EXPECT_NE(shapes.output(*graph.ParseEndpoint("w")).dim(0), rows);
}

std::string ShapeConst(const char* name, const char* values) {
  return std::string("node { name: '") + name +
         "' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor {" +
         " dtype: DT_INT32 tensor_shape { dim { size: 2 } } " + values + " } } } }\n";
}

TEST(ShapeInference, ConstantsReachShapeFunctionsThroughIdentities) {
  const Graph graph =
      LoadGood(kX + ShapeConst("s", "int_val: [6, 4]") + UnaryText("i", "Identity", "s", "DT_INT32") +
               "node { name: 'r' op: 'Reshape' input: 'x' input: 'i' attr { key: 'T' value { type: DT_FLOAT } } }");
  const InferredShapes shapes = InferShapes(graph, {}, nullptr);
  EXPECT_EQ(ShapeOf(graph, shapes, "r"), "[6,4]");
  const Endpoint i = *graph.ParseEndpoint("i");
  ASSERT_NE(shapes.literal(i), nullptr);
  ASSERT_TRUE(shapes.value(i).has_value());
  EXPECT_EQ(*shapes.value(i), (Dims{6, 4}));
  EXPECT_EQ(shapes.literal(*graph.ParseEndpoint("r")), nullptr);
}

TEST(ShapeInference, GarbledConstantsHaveNoValue) {
  const Graph graph =
      LoadGood(kX + ShapeConst("s", "tensor_content: 'abc'") +
               "node { name: 'r' op: 'Reshape' input: 'x' input: 's' attr { key: 'T' value { type: DT_FLOAT } } }");
  const InferredShapes shapes = InferShapes(graph, {}, nullptr);
  EXPECT_EQ(shapes.literal(*graph.ParseEndpoint("s")), nullptr);
  EXPECT_EQ(shapes.output(*graph.ParseEndpoint("r")).rank(), 2);
}

TEST(ShapeInference, OverridesReplaceShapesAndValues) {
  const Graph graph =
      LoadGood(kX + ShapeConst("s", "int_val: [6, 4]") + UnaryText("y", "Neg", "x") +
               "node { name: 'r' op: 'Reshape' input: 'x' input: 's' attr { key: 'T' value { type: DT_FLOAT } } }");
  ShapeInferenceOptions options;
  options.overrides[*graph.ParseEndpoint("x")] = PartialShape::Known(Shape::Of({8, 3}));
  options.overrides[*graph.ParseEndpoint("s")] = PartialShape::Known(Shape::Of({2}));
  const InferredShapes shapes = InferShapes(graph, options, nullptr);
  EXPECT_EQ(ShapeOf(graph, shapes, "y"), "[8,3]");
  EXPECT_FALSE(shapes.output(*graph.ParseEndpoint("r")).IsFullyKnown()) << "a fed value is not the constant's";
}

TEST(ShapeInference, ContradictionsAreFindings) {
  const Graph graph = LoadGood(kX + PlaceholderText("y") + AddText("z", "x", "y") + UnaryText("after", "Neg", "z"));
  ShapeInferenceOptions options;
  options.overrides[*graph.ParseEndpoint("y")] = PartialShape::Known(Shape::Of({4}));
  std::vector<Finding> findings;
  const InferredShapes shapes = InferShapes(graph, options, &findings);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].node, "z");
  EXPECT_THAT(findings[0].message, HasSubstr("[4]"));
  EXPECT_FALSE(shapes.output(*graph.ParseEndpoint("after")).has_rank());

  options.overrides[*graph.ParseEndpoint("z")] = PartialShape::Known(Shape::Of({2}));
  findings.clear();
  EXPECT_EQ(ShapeOf(graph, InferShapes(graph, options, &findings), "after"), "[2]");
  EXPECT_THAT(findings, IsEmpty()) << "a fed node is not computed";
}

TEST(ShapeInference, WhatALoopCarriesIsUnknown) {
  const std::string t = " attr { key: 'T' value { type: DT_FLOAT } } ";
  const Graph graph =
      LoadGood(kX + "node { name: 'e' op: 'Enter' input: 'x' attr { key: 'frame_name' value { s: 'w' } }" + t + "}" +
               "node { name: 'm' op: 'Merge' input: 'e' input: 'n' attr { key: 'N' value { i: 2 } }" + t + "}" +
               UnaryText("n", "NextIteration", "m") + UnaryText("out", "Exit", "m"));
  const InferredShapes shapes = InferShapes(graph, {}, nullptr);
  EXPECT_EQ(shapes.output(*graph.ParseEndpoint("e")).rank(), 2);
  EXPECT_FALSE(shapes.output(*graph.ParseEndpoint("m")).has_rank());
  EXPECT_EQ(ShapeOf(graph, shapes, "m:1"), "[]");
  EXPECT_FALSE(shapes.output(*graph.ParseEndpoint("out")).has_rank());
}

}  // namespace
}  // namespace thalweg
