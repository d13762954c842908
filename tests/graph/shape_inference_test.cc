// Shapes, literals and values over whole graphs.
#include "thalweg/graph/shape_inference.h"

#include "absl/strings/str_cat.h"
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

// One variable of a loop: it enters as `start`, is the Merge `name` in the body, goes on as `next`, and leaves as `name`_out.
std::string LoopVariable(const std::string& name, const std::string& start, const std::string& next, const std::string& frame = "w") {
  const std::string t = " attr { key: 'T' value { type: DT_FLOAT } } ";
  return "node { name: '" + name + "_in' op: 'Enter' input: '" + start + "' attr { key: 'frame_name' value { s: '" + frame + "' } }" + t + "}\n" +
         "node { name: '" + name + "' op: 'Merge' input: '" + name + "_in' input: '" + name + "_next' attr { key: 'N' value { i: 2 } }" + t + "}\n" +
         UnaryText(name + "_next", "NextIteration", next) + UnaryText(name + "_out", "Exit", name);
}

std::string ReshapeText(const char* name, const char* input, const char* shape) {
  return std::string("node { name: '") + name + "' op: 'Reshape' input: '" + input + "' input: '" + shape + "' attr { key: 'T' value { type: DT_FLOAT } } }\n";
}

TEST(ShapeInferenceOfLoops, ABodyThatKeepsTheShapeIsFollowed) {
  const Graph graph = LoadGood(kX + LoopVariable("v", "x", "y") + UnaryText("y", "Neg", "v") + UnaryText("after", "Neg", "v_out"));
  const InferredShapes shapes = InferShapes(graph, {}, nullptr);
  const PartialShape x = shapes.output(*graph.ParseEndpoint("x"));
  for (const char* tensor : {"v", "y", "v_next", "v_out", "after"}) EXPECT_EQ(shapes.output(*graph.ParseEndpoint(tensor)), x) << tensor;
  EXPECT_EQ(ShapeOf(graph, shapes, "v:1"), "[]");
}

TEST(ShapeInferenceOfLoops, WhatABodyChangesIsUnknown) {
  const Graph graph = LoadGood(PlaceholderText("x", "DT_FLOAT", "dim { size: 2 } dim { size: 3 }") + ShapeConst("s", "int_val: [2, -1]") +
                               LoopVariable("v", "x", "y") + ReshapeText("y", "v", "s"));
  const PartialShape v = InferShapes(graph, {}, nullptr).output(*graph.ParseEndpoint("v"));
  ASSERT_EQ(v.rank(), 2);
  EXPECT_EQ(v.dim(0), 2);
  EXPECT_TRUE(IsSymbol(v.dim(1)));
}

TEST(ShapeInferenceOfLoops, ARankThatChangesIsUnknown) {
  const Graph graph = LoadGood(PlaceholderText("x", "DT_FLOAT", "dim { size: 3 }") + ShapeConst("s", "int_val: [1, 3]") + LoopVariable("v", "x", "y") +
                               ReshapeText("y", "v", "s"));
  EXPECT_FALSE(InferShapes(graph, {}, nullptr).output(*graph.ParseEndpoint("v")).has_rank());
}

// a, b = b, a: each is what both have in common, beside one that is kept.
TEST(ShapeInferenceOfLoops, VariablesThatTradePlaces) {
  const Graph graph = LoadGood(PlaceholderText("x", "DT_FLOAT", "dim { size: 2 } dim { size: 5 }") + PlaceholderText("y", "DT_FLOAT", "dim { size: 2 } dim { size: 6 }") +
                               LoopVariable("a", "x", "b") + LoopVariable("b", "y", "a") + LoopVariable("c", "x", "c"));
  const InferredShapes shapes = InferShapes(graph, {}, nullptr);
  for (const char* tensor : {"a", "b"}) {
    const PartialShape& shape = shapes.output(*graph.ParseEndpoint(tensor));
    ASSERT_EQ(shape.rank(), 2) << tensor;
    EXPECT_EQ(shape.dim(0), 2) << tensor;
    EXPECT_TRUE(IsSymbol(shape.dim(1))) << tensor;
  }
  EXPECT_EQ(ShapeOf(graph, shapes, "c"), "[2,5]");
}

// v0 = v1, v1 = v2, ...: what the last one does to its shape reaches the first one many iterations later.
std::string Chain(int variables, const std::string& last) {
  std::string text = PlaceholderText("x", "DT_FLOAT", "dim { size: 2 } dim { size: 3 }") + ShapeConst("s", "int_val: [2, -1]");
  for (int k = 0; k < variables; ++k) {
    text += LoopVariable(absl::StrCat("v", k), "x", k + 1 < variables ? absl::StrCat("v", k + 1) : last);
  }
  return text + ReshapeText("y", absl::StrCat("v", variables - 1).c_str(), "s");
}

TEST(ShapeInferenceOfLoops, ChangesSpreadFromVariableToVariable) {
  for (const int variables : {3, 30}) {
    const Graph changed = LoadGood(Chain(variables, "y"));
    const InferredShapes shapes = InferShapes(changed, {}, nullptr);
    for (int k = 0; k < variables; ++k) {
      const PartialShape& shape = shapes.output(*changed.ParseEndpoint(absl::StrCat("v", k)));
      EXPECT_FALSE(shape.has_rank() && !IsSymbol(shape.dim(1))) << k << " of " << variables << ": " << shape.ToString();
    }
    const Graph kept = LoadGood(Chain(variables, "v0"));
    EXPECT_EQ(ShapeOf(kept, InferShapes(kept, {}, nullptr), "v1"), "[2,3]");
  }
}

TEST(ShapeInferenceOfLoops, LoopsWithinLoops) {
  const std::string loops = PlaceholderText("x", "DT_FLOAT", "dim { size: 2 } dim { size: 3 }") + ShapeConst("s", "int_val: [2, -1]") +
                            LoopVariable("outer", "x", "inner_out") + LoopVariable("inner", "outer", "y", "w2");
  const Graph kept = LoadGood(loops + UnaryText("y", "Neg", "inner"));
  EXPECT_EQ(ShapeOf(kept, InferShapes(kept, {}, nullptr), "y"), "[2,3]");
  EXPECT_EQ(ShapeOf(kept, InferShapes(kept, {}, nullptr), "outer_out"), "[2,3]");
  const Graph changed = LoadGood(loops + ReshapeText("y", "inner", "s"));
  for (const char* tensor : {"inner", "outer", "outer_out"}) {
    const PartialShape shape = InferShapes(changed, {}, nullptr).output(*changed.ParseEndpoint(tensor));
    EXPECT_EQ(shape.dim(0), 2) << tensor;
    EXPECT_TRUE(IsSymbol(shape.dim(1))) << tensor;
  }
}

// The body may never run, so that what enters does not suit it is no fault of the graph.
TEST(ShapeInferenceOfLoops, BodiesThatDoNotSuitWhatEntersAreNoFault) {
  const Graph graph = LoadGood(kX + PlaceholderText("z", "DT_FLOAT", "dim { size: 4 }") + LoopVariable("v", "x", "y") + AddText("y", "v", "z"));
  std::vector<Finding> findings;
  EXPECT_FALSE(InferShapes(graph, {}, &findings).output(*graph.ParseEndpoint("v")).has_rank());
  EXPECT_THAT(findings, IsEmpty());
}

}  // namespace
}  // namespace thalweg
