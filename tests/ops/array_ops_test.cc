// Kernels of the array family, one node at a time. Broad comparison with TensorFlow is tests/golden's; here stand the
// rules that are easy to get wrong, and inputs that must be refused.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <complex>
#include <limits>

#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;
using testing::Values;

std::string ShapeOf(const absl::StatusOr<Tensor>& t) { return t.ok() ? t->shape().ToString() : t.status().ToString(); }

absl::StatusCode CodeOf(OpRunner& op) { return op.Run().status().code(); }
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

using Ints = std::vector<int32_t>;

absl::StatusOr<Tensor> Reshape(std::initializer_list<int64_t> from, Ints to) {
  const int64_t rank = static_cast<int64_t>(to.size());
  OpRunner op("Reshape");
  op.Input<int32_t>(Ints(Shape::Of(from).num_elements(), 5), from).Input<int32_t>(std::move(to), {rank});
  return op.RunOne();
}

TEST(Reshape, L21_FindsTheOpenDimensionBesideZeros) {
  EXPECT_EQ(ShapeOf(Reshape({0}, {0, -1})), "[0,1]");
  EXPECT_EQ(ShapeOf(Reshape({0, 3}, {-1, 0})), "[3,0]");
  EXPECT_EQ(ShapeOf(Reshape({2, 6}, {3, -1})), "[3,4]");
  EXPECT_EQ(ShapeOf(Reshape({1}, {})), "[]");
  EXPECT_EQ(ShapeOf(Reshape({0, 3}, {0, 2, -1})), "[0,2,1]");
}

TEST(Reshape, RefusesWhatDoesNotFit) {
  for (const Ints& to : {Ints{4}, Ints{-1, -1}, Ints{-1, 4}, Ints{-2, 3}, Ints{0, -1}, Ints{2, 0}}) {
    EXPECT_EQ(Reshape({6}, to).status().code(), kInvalid);
  }
  OpRunner overflow("Reshape");
  overflow.Input<float>({1}, {1}).Input<int64_t>({int64_t{1} << 62, 4}, {2});
  EXPECT_EQ(CodeOf(overflow), kInvalid);
}

TEST(Reshape, SharesTheBuffer) {
  const Tensor in = *Tensor::Of<float>({1, 2, 3, 4}, Shape::Of({4}));
  OpRunner op("Reshape");
  op.Input(in).Input<int32_t>({2, 2}, {2});
  const absl::StatusOr<Tensor> out = op.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(out->SharesBufferWith(in));
}

TEST(ExpandDims, L21_TakesAnyOneElementAsAxis) {
  OpRunner op("ExpandDims");
  op.Input<float>({1, 2}, {2}).Input<int32_t>({-1}, {1, 1});
  EXPECT_EQ(ShapeOf(op.RunOne()), "[2,1]");
  OpRunner none("ExpandDims");
  none.Input<float>({1, 2}, {2}).Input<int32_t>({}, {0});
  EXPECT_EQ(CodeOf(none), kInvalid);
  OpRunner far("ExpandDims");
  far.Input<float>({1, 2}, {2}).Scalar<int64_t>(std::numeric_limits<int64_t>::min());
  EXPECT_EQ(CodeOf(far), kInvalid);
}

TEST(Squeeze, L21_AllowsAnAxisTwice) {
  OpRunner op("Squeeze");
  op.Input<float>({1}, {1, 1}).With("squeeze_dims", MakeListAttr(std::vector<int64_t>{0, 0, -2}));
  EXPECT_EQ(ShapeOf(op.RunOne()), "[1]");
}

TEST(Concat, L21_TakesAVectorOfOneAsAxis) {
  OpRunner op("ConcatV2");
  op.Input<int32_t>({1, 2, 3, 4}, {2, 2}).Input<int32_t>({5, 6}, {2, 1}).Input<int32_t>({-1}, {1});
  op.MayBeRefusedByShape();
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{1, 2, 5, 3, 4, 6}));
}

TEST(Concat, ComparesShapesEvenOfEmptyInputs) {
  OpRunner op("ConcatV2");
  op.Input<int32_t>({1}, {1, 1}).Input<int32_t>({}, {0, 5}).Scalar<int32_t>(0);
  EXPECT_EQ(CodeOf(op), kInvalid);
  OpRunner scalars("ConcatV2");
  scalars.Scalar<int32_t>(1).Scalar<int32_t>(2).Scalar<int32_t>(0);
  EXPECT_EQ(CodeOf(scalars), kInvalid);
}

TEST(Pack, StacksStrings) {
  OpRunner op("Pack");
  op.Input<std::string>({"a", "b"}, {2}).Input<std::string>({"c", "d"}, {2}).With("axis", 1);
  EXPECT_EQ(Values<std::string>(op.RunOne()), (std::vector<std::string>{"a", "c", "b", "d"}));
}

TEST(Split, SharesContiguousParts) {
  const Tensor in = *Tensor::Of<int32_t>({1, 2, 3, 4}, Shape::Of({4, 1}));
  OpRunner op("Split");
  op.Scalar<int32_t>(0).Input(in).With("num_split", 2);
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].flat<int32_t>()[0], 3);
  EXPECT_TRUE((*out)[1].SharesBufferWith(in));
}

TEST(SplitV, OneSizeMayBeOpen) {
  OpRunner op("SplitV");
  op.Input<int32_t>({1, 2, 3}, {3}).Input<int32_t>({1, -1}, {2}).Scalar<int32_t>(0).With("num_split", 2);
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].shape().ToString(), "[2]");
  for (const Ints& sizes : {Ints{4, -1}, Ints{-1, -1}, Ints{5, -2}, Ints{1, 1}, Ints{1, 2, 0}}) {
    OpRunner bad("SplitV");
    const int64_t n = static_cast<int64_t>(sizes.size());
    bad.Input<int32_t>({1, 2, 3}, {3}).Input<int32_t>(sizes, {n}).Scalar<int32_t>(0).With("num_split", 2);
    EXPECT_EQ(CodeOf(bad), kInvalid);
  }
}

TEST(Slice, ChecksBothEnds) {
  const auto slice = [](int64_t begin, int64_t size) {
    OpRunner op("Slice");
    op.Input<int32_t>({1, 2, 3}, {3}).Input<int64_t>({begin}, {1}).Input<int64_t>({size}, {1});
    return op.RunOne();
  };
  EXPECT_EQ(Values<int32_t>(slice(1, -1)), (Ints{2, 3}));
  EXPECT_EQ(Values<int32_t>(slice(3, 0)), Ints{});
  const int64_t max = std::numeric_limits<int64_t>::max();
  for (const auto& [begin, size] :
       std::vector<std::pair<int64_t, int64_t>>{{-1, 1}, {4, 0}, {1, 3}, {0, -2}, {max, max}, {1, max}}) {
    EXPECT_EQ(slice(begin, size).status().code(), kInvalid) << begin << " " << size;
  }
}

TEST(StridedSlice, ReversesAndPicks) {
  OpRunner op("StridedSlice");
  op.Input<int32_t>({0, 1, 2, 3, 4, 5}, {2, 3})
      .Input<int32_t>({1, 2}, {2})
      .Input<int32_t>({0, 0}, {2})
      .Input<int32_t>({1, -2}, {2});
  op.With("shrink_axis_mask", 1).With("end_mask", 2);
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{5, 3}));
}

TEST(Transpose, L21_TakesNegativeEntries) {
  OpRunner op("Transpose");
  op.Input<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3}).Input<int32_t>({-1, 0}, {2});
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{1, 4, 2, 5, 3, 6}));
  for (const Ints& perm : {Ints{1, 1}, Ints{0, 2}, Ints{0, -2}, Ints{-3, 0}, Ints{0}}) {
    OpRunner bad("Transpose");
    const int64_t n = static_cast<int64_t>(perm.size());
    bad.Input<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3}).Input<int32_t>(perm, {n});
    EXPECT_EQ(CodeOf(bad), kInvalid);
  }
}

TEST(ConjugateTranspose, Conjugates) {
  using C = std::complex<float>;
  OpRunner op("ConjugateTranspose");
  op.Input<C>({C(1, 2), C(3, 4)}, {1, 2}).Input<int32_t>({1, 0}, {2});
  EXPECT_EQ(Values<C>(op.RunOne()), (std::vector<C>{C(1, -2), C(3, -4)}));
}

TEST(Tile, RefusesNegativeAndHugeMultiples) {
  OpRunner op("Tile");
  op.Input<int32_t>({1, 2}, {1, 2}).Input<int32_t>({2, 2}, {2});
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{1, 2, 1, 2, 1, 2, 1, 2}));
  OpRunner negative("Tile");
  negative.Input<float>({}, {0, 2}).Input<int32_t>({3, -2}, {2});
  EXPECT_EQ(CodeOf(negative), kInvalid);
  OpRunner huge("Tile");
  huge.Input<int32_t>({1, 2}, {2}).Input<int64_t>({int64_t{1} << 62}, {1});
  EXPECT_EQ(CodeOf(huge), kInvalid);
}

TEST(BroadcastTo, WidensOnesOnly) {
  OpRunner op("BroadcastTo");
  op.Input<int32_t>({1, 2}, {2, 1}).Input<int32_t>({2, 2, 2}, {3});
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{1, 1, 2, 2, 1, 1, 2, 2}));
  for (const Ints& to : {Ints{1}, Ints{0}, Ints{4}, Ints{-1}, Ints{}}) {
    OpRunner bad("BroadcastTo");
    const int64_t n = static_cast<int64_t>(to.size());
    bad.Input<int32_t>({1, 2, 3}, {3}).Input<int32_t>(to, {n});
    EXPECT_EQ(CodeOf(bad), kInvalid);
  }
}

TEST(Pad, WritesTheBorderOnce) {
  OpRunner op("PadV2");
  op.Input<int32_t>({1, 2}, {1, 2}).Input<int32_t>({1, 0, 0, 2}, {2, 2}).Scalar<int32_t>(9);
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{9, 9, 9, 9, 1, 2, 9, 9}));
  OpRunner strings("Pad");
  strings.Input<std::string>({"a"}, {1}).Input<int32_t>({1, 1}, {1, 2});
  EXPECT_EQ(Values<std::string>(strings.RunOne()), (std::vector<std::string>{"", "a", ""}));
}

TEST(Pad, RefusesNegativeAndOverflowingPaddings) {
  OpRunner negative("Pad");
  negative.Input<int32_t>({1, 2}, {2}).Input<int32_t>({-1, 1}, {1, 2});
  EXPECT_EQ(CodeOf(negative), kInvalid);
  OpRunner huge("Pad");
  huge.Input<int32_t>({1}, {1}).Input<int64_t>({std::numeric_limits<int64_t>::max(), 1}, {1, 2});
  EXPECT_EQ(CodeOf(huge), kInvalid);
}

TEST(Reverse, L21_ReturnsScalarsAndEmptiesWhateverTheAxes) {
  OpRunner scalar("ReverseV2");
  scalar.Scalar<int32_t>(4).Input<int32_t>({3}, {1}).MayBeRefusedByShape();
  EXPECT_EQ(Values<int32_t>(scalar.RunOne()), Ints{4});
  OpRunner twice("ReverseV2");
  twice.Input<int32_t>({1, 2}, {2}).Input<int32_t>({0, -1}, {2});
  EXPECT_EQ(CodeOf(twice), kInvalid);
}

TEST(Gather, NamesTheBadIndex) {
  OpRunner op("GatherV2");
  op.Input<int32_t>({1, 2}, {2}).Input<int32_t>({0, 1, 2, 0}, {2, 2}).Scalar<int32_t>(0);
  const absl::Status status = op.Run().status();
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_NE(status.message().find("indices[1,0] is 2"), absl::string_view::npos) << status;
}

TEST(Gather, BatchDimsPairRows) {
  OpRunner op("GatherV2");
  op.Input<int32_t>({1, 2, 3, 4}, {2, 2}).Input<int32_t>({1, 0}, {2, 1}).Scalar<int32_t>(1).With("batch_dims", -1);
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{2, 3}));
}

TEST(Gather, NothingToTakeIsFineOnlyIfNothingIsTaken) {
  OpRunner no_elements("GatherV2");
  no_elements.Input<float>({}, {2, 0}).Input<int32_t>({5}, {1}).Scalar<int32_t>(0);
  EXPECT_EQ(ShapeOf(no_elements.RunOne()), "[1,0]");
  OpRunner no_rows("GatherV2");
  no_rows.Input<float>({}, {0, 2}).Input<int32_t>({0}, {1}).Scalar<int32_t>(0);
  EXPECT_EQ(CodeOf(no_rows), kInvalid);
}

TEST(GatherNd, L22_RefusesIndicesIntoNothing) {
  OpRunner op("GatherNd");
  op.Input<float>({}, {2, 0}).Input<int32_t>({0}, {1, 1});
  EXPECT_EQ(CodeOf(op), kInvalid);
}

TEST(GatherNd, PolicyIgnoreGivesZeros) {
  OpRunner op("GatherNd");
  op.Input<int32_t>({1, 2}, {2}).Input<int32_t>({2, 1}, {2, 1}).With("bad_indices_policy", "IGNORE");
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{0, 2}));
  op.With("bad_indices_policy", "ERROR");
  EXPECT_EQ(CodeOf(op), kInvalid);
}

TEST(OneHot, LeavesRowsOfBadIndicesOff) {
  OpRunner op("OneHot");
  op.Input<int64_t>({1, 5, -1}, {3}).Scalar<int32_t>(2).Scalar<int32_t>(7).Scalar<int32_t>(0).With("axis", 0);
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{0, 0, 0, 7, 0, 0}));
}

TEST(Where, ListsCoordinatesOfTrueElements) {
  OpRunner op("Where");
  op.Input<float>({0.0f, -0.0f, NAN, 1.0f}, {2, 2});
  EXPECT_EQ(Values<int64_t>(op.RunOne()), (std::vector<int64_t>{1, 0, 1, 1}));
  OpRunner scalar("Where");
  scalar.Scalar<bool>(true);
  EXPECT_EQ(CodeOf(scalar), kInvalid);  // L22
  OpRunner large("Where");
  std::vector<uint8_t> many(100000);
  for (size_t i = 0; i < many.size(); i += 3) many[i] = 1;
  large.Input<uint8_t>(many, {1000, 100});
  const absl::StatusOr<Tensor> out = large.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->dim(0), 33334);
  EXPECT_EQ(out->flat<int64_t>()[2 * 33333] * 100 + out->flat<int64_t>()[2 * 33333 + 1], 99999);
}

TEST(Unique, L18_MinusZeroEqualsZeroAndEveryNaNIsUnique) {
  OpRunner op("UniqueWithCounts");
  op.Input<float>({-0.0f, 0.0f, NAN, NAN, 1.0f}, {5});
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(std::signbit((*out)[0].flat<float>()[0]));
  EXPECT_EQ(Values<int32_t>((*out)[1]), (Ints{0, 0, 1, 2, 3}));
  EXPECT_EQ(Values<int32_t>((*out)[2]), (Ints{2, 1, 1, 1}));
}

TEST(TopK, L18_LowerIndexFirstAmongEquals) {
  OpRunner op("TopKV2");
  op.Input<float>({1, 3, 3, -0.0f, 0.0f, NAN}, {6}).Scalar<int32_t>(6);
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values<int32_t>((*out)[1]), (Ints{5, 1, 2, 0, 3, 4}));
  OpRunner bad("TopKV2");
  bad.Input<float>({1, 2}, {2}).Scalar<int32_t>(3);
  EXPECT_EQ(CodeOf(bad), kInvalid);
}

TEST(Range, HandlesTheWholeRangeOfIntegers) {
  const int64_t min = std::numeric_limits<int64_t>::min(), max = std::numeric_limits<int64_t>::max();
  OpRunner op("Range");
  op.Scalar<int64_t>(max).Scalar<int64_t>(min).Scalar<int64_t>(min);
  EXPECT_EQ(Values<int64_t>(op.RunOne()), (std::vector<int64_t>{max, -1}));
  for (const auto& args : std::vector<std::array<int64_t, 3>>{{0, 5, 0}, {3, 0, 1}, {0, 3, -1}, {min, max, 1}}) {
    OpRunner bad("Range");
    bad.Scalar<int64_t>(args[0]).Scalar<int64_t>(args[1]).Scalar<int64_t>(args[2]);
    EXPECT_EQ(CodeOf(bad), kInvalid);
  }
}

TEST(Range, RefusesNotANumber) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const auto& args : std::vector<std::array<float, 3>>{{NAN, 1, 1}, {0, NAN, 1}, {0, 1, NAN}, {0, inf, 1}}) {
    OpRunner bad("Range");
    bad.Scalar<float>(args[0]).Scalar<float>(args[1]).Scalar<float>(args[2]);
    EXPECT_EQ(CodeOf(bad), kInvalid);
  }
  OpRunner none("Range");
  none.Scalar<float>(0).Scalar<float>(3).Scalar<float>(inf);
  EXPECT_EQ(Values<float>(none.RunOne()), std::vector<float>{});
}

TEST(Fill, L21_TakesAScalarShapeAndAVectorOfOne) {
  OpRunner op("Fill");
  op.Scalar<int32_t>(3).Input<std::string>({"x"}, {1}).MayBeRefusedByShape();
  EXPECT_EQ(Values<std::string>(op.RunOne()), (std::vector<std::string>(3, "x")));
  OpRunner negative("Fill");
  negative.Input<int32_t>({-1}, {1}).Scalar<float>(1);
  EXPECT_EQ(CodeOf(negative), kInvalid);
  OpRunner huge("Fill");
  huge.Input<int64_t>({0, int64_t{1} << 62, int64_t{1} << 62}, {3}).Scalar<float>(1);
  EXPECT_EQ(CodeOf(huge), kInvalid);
}

TEST(DepthToSpace, InvertsSpaceToDepthInBothLayouts) {
  for (const char* format : {"NHWC", "NCHW"}) {
    std::vector<int32_t> values(2 * 4 * 4 * 4);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i);
    OpRunner deep("SpaceToDepth");
    deep.Input<int32_t>(values, {2, 4, 4, 4}).With("block_size", 2).With("data_format", format);
    const absl::StatusOr<Tensor> middle = deep.RunOne();
    ASSERT_TRUE(middle.ok()) << middle.status();
    OpRunner back("DepthToSpace");
    back.Input(*middle).With("block_size", 2).With("data_format", format);
    EXPECT_EQ(Values<int32_t>(back.RunOne()), values);
  }
  OpRunner bad("DepthToSpace");
  bad.Input<int32_t>({1, 2, 3}, {1, 1, 1, 3}).With("block_size", 2);
  EXPECT_EQ(CodeOf(bad), kInvalid);
}

TEST(Assert, PrintsItsData) {
  OpRunner op("Assert");
  op.Scalar<bool>(false)
      .Scalar<std::string>("sum must be positive")
      .Input<int32_t>({1, 2, 3, 3080}, {4})
      .With("summarize", 4);
  const absl::Status status = op.Run().status();
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_NE(status.message().find("sum must be positive"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("3080"), absl::string_view::npos) << status;
}

TEST(Placeholder, SaysWhatToFeed) {
  OpRunner op("Placeholder");
  op.With("dtype", DType::kFloat32).With("shape", MakeShapeAttr(PartialShape::OfDims({kUnknownDim, 3})));
  const absl::Status status = op.Run().status();
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_NE(status.message().find("you must feed a value for placeholder"), absl::string_view::npos) << status;
  EXPECT_NE(status.message().find("float32 and shape [?,3]"), absl::string_view::npos) << status;
}

}  // namespace
}  // namespace thalweg
