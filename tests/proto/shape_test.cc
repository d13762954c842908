#include "thalweg/proto/shape.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape::Of({2, 3, 4}).num_elements(), 24);
  EXPECT_EQ(Shape::Of({2, 0, 4}).num_elements(), 0);
  EXPECT_EQ(Shape::Of({2, 3, 4}).NumElements(1, 3), 12);
  EXPECT_EQ(Shape::Of({2, 3, 4}).NumElements(1, 1), 1);
  EXPECT_EQ(Shape::Make({kHuge}).value().num_elements(), kHuge);
}

// Robustness rule 3: no unchecked way to a shape, and a zero does not excuse the other dimensions.
TEST(Shape, RefusesWhatDoesNotFit) {
  const std::vector<std::vector<int64_t>> bad = {{-1},
                                                 {3, -2},
                                                 {std::numeric_limits<int64_t>::min()},
                                                 {kHuge, 2},
                                                 {kHuge, kHuge},
                                                 {0, kHuge, kHuge},
                                                 {kHuge, 0, kHuge}};
  for (const auto& dims : bad) {
    EXPECT_EQ(Shape::Make(dims).status().code(), absl::StatusCode::kInvalidArgument) << testing::PrintToString(dims);
  }
  EXPECT_TRUE(Shape::Make(std::vector<int64_t>(kMaxRank, 1)).ok());
  EXPECT_FALSE(Shape::Make(std::vector<int64_t>(kMaxRank + 1, 1)).ok());
}

TEST(ShapeDeathTest, OfIsNotForData) { EXPECT_DEATH(Shape::Of({-1}), "must be >= 0"); }

TEST(Shape, PrintsAndCompares) {
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape::Of({2, 3}).ToString(), "[2,3]");
  EXPECT_EQ(Shape::Of({2, 3}), Shape::Of({2, 3}));
  EXPECT_NE(Shape::Of({2, 3}), Shape::Of({3, 2}));
  EXPECT_NE(Shape::Of({1}), Shape());
}

TEST(PartialShape, KnownUnknownAndSymbolicDimensions) {
  EXPECT_EQ(PartialShape().ToString(), "<unknown>");
  EXPECT_EQ(PartialShape().rank(), -1);
  const PartialShape shape = PartialShape::OfDims({kUnknownDim, 3, -2, -3});
  EXPECT_EQ(shape.ToString(), "[?,3,s0,s1]");
  EXPECT_TRUE(IsSymbol(shape.dim(2)));
  EXPECT_FALSE(IsSymbol(shape.dim(0)));
  EXPECT_FALSE(shape.IsFullyKnown());
  EXPECT_EQ(shape.NumElementsOrUnknown(), -1);
  EXPECT_FALSE(shape.ToShape().ok());
  EXPECT_EQ(PartialShape::Known(Shape::Of({2, 3})).ToShape().value(), Shape::Of({2, 3}));
  EXPECT_EQ(PartialShape::Known(Shape::Of({2, 3})).NumElementsOrUnknown(), 6);
}

TEST(PartialShape, MakeChecksData) {
  EXPECT_TRUE(PartialShape::Make({-1, 5}).ok());
  EXPECT_FALSE(PartialShape::Make({-2}).ok()) << "symbols do not come from data";
  EXPECT_FALSE(PartialShape::Make({-1, kHuge, kHuge}).ok());
  EXPECT_FALSE(PartialShape::Make(std::vector<int64_t>(kMaxRank + 1, -1)).ok());
}

TEST(PartialShape, Compatibility) {
  const PartialShape unknown;
  const PartialShape a = PartialShape::OfDims({kUnknownDim, 3});
  EXPECT_TRUE(unknown.IsCompatibleWith(a));
  EXPECT_TRUE(a.IsCompatibleWith(unknown));
  EXPECT_TRUE(a.IsCompatibleWith(PartialShape::OfDims({7, -5})));
  EXPECT_FALSE(a.IsCompatibleWith(PartialShape::OfDims({7, 4})));
  EXPECT_FALSE(a.IsCompatibleWith(PartialShape::UnknownOfRank(3)));
  EXPECT_TRUE(a.IsCompatibleWith(Shape::Of({9, 3})));
  EXPECT_FALSE(a.IsCompatibleWith(Shape::Of({9, 4})));
  EXPECT_FALSE(a.IsCompatibleWith(Shape()));
  EXPECT_TRUE(unknown.IsCompatibleWith(Shape()));
}

// Robustness rule 10: one place for axes, compared in 64 bits.
TEST(NormalizeAxis, AcceptsExactlyTheRange) {
  EXPECT_EQ(NormalizeAxis(0, 2).value(), 0);
  EXPECT_EQ(NormalizeAxis(-1, 2).value(), 1);
  EXPECT_EQ(NormalizeAxis(-2, 2).value(), 0);
  for (int64_t axis : {int64_t{2}, int64_t{-3}, std::numeric_limits<int64_t>::min(),
                       std::numeric_limits<int64_t>::max(), int64_t{1} << 32}) {
    EXPECT_FALSE(NormalizeAxis(axis, 2).ok()) << axis;
  }
  EXPECT_FALSE(NormalizeAxis(0, 0).ok());
}

TEST(BroadcastShapes, FollowsNumpy) {
  EXPECT_EQ(BroadcastShapes(Shape::Of({2, 1, 4}), Shape::Of({3, 1})).value(), Shape::Of({2, 3, 4}));
  EXPECT_EQ(BroadcastShapes(Shape(), Shape::Of({3})).value(), Shape::Of({3}));
  EXPECT_EQ(BroadcastShapes(Shape::Of({1}), Shape::Of({0})).value(), Shape::Of({0}));
  EXPECT_FALSE(BroadcastShapes(Shape::Of({2}), Shape::Of({3})).ok());
  EXPECT_FALSE(BroadcastShapes(Shape::Of({0}), Shape::Of({3})).ok());
  EXPECT_FALSE(BroadcastShapes(Shape::Of({kHuge, 1}), Shape::Of({4})).ok()) << "the result has too many elements";
}

}  // namespace
}  // namespace thalweg
