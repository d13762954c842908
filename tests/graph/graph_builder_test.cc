// Building graphs in a program.
#include "thalweg/graph/graph_builder.h"

#include "gtest/gtest.h"
#include "thalweg/tests/graph/test_ops.h"

namespace thalweg {
namespace {

TEST(GraphBuilder, WhatIsBuiltLoads) {
  GraphBuilder b;
  EXPECT_EQ(b.AddNode("Placeholder", "x", {},
                      {{"dtype", DType::kFloat32}, {"shape", MakeShapeAttr(PartialShape::UnknownOfRank(1))}}),
            "x");
  auto two = std::make_shared<TensorLiteral>();
  two->dtype = DType::kFloat32;
  b.AddConstant("two", two);
  EXPECT_EQ(b.AddNode("Add", "", {"x", "two"}, {{"T", DType::kFloat32}}), "Add");
  EXPECT_EQ(b.AddNode("Add", "", {"Add", "x:0", "^two"}, {{"T", DType::kFloat32}}, "/device:CPU:1"), "Add_1");
  b.SetProducerVersion(1286);
  EXPECT_EQ(b.num_nodes(), 4);

  LoadOptions options;
  options.schemas = &TestOps();
  const absl::StatusOr<LoadResult> loaded = LoadGraphBytes(b.SerializeAsGraphDef(), nullptr, "built", options);
  ASSERT_TRUE(loaded.ok() && loaded->status().ok()) << loaded.status();
  EXPECT_EQ(loaded->graph.versions.producer, 1286);
  EXPECT_EQ(loaded->graph.ToString(),
            "x = Placeholder() [dtype=float32, shape=[?]]\n"
            "two = Const() [dtype=float32, value=float32[]]\n"
            "Add = Add(x:0, two:0) [T=float32]\n"
            "Add_1 = Add(Add:0, x:0, ^two) [T=float32] @/device:CPU:1\n");
}

}  // namespace
}  // namespace thalweg
