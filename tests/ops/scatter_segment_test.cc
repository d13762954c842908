// Scatters, segment reductions, diagonals, space and batch, Einsum, gradients of elementwise ops: rules and refusals. Values are
// TensorFlow's in the conformance cases.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;
using testing::Values;
using Ints = std::vector<int32_t>;
using Floats = std::vector<float>;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(ScatterNd, L22_IndicesIntoNothingAreRefused) {
  OpRunner op("ScatterNd");
  op.Input<int32_t>({0}, {1, 1}).Input<float>({}, {1, 0}).Input<int32_t>({3, 0}, {2});
  EXPECT_EQ(op.Run().status().code(), kInvalid);
  OpRunner none("ScatterNd");
  none.Input<int32_t>({}, {0, 1}).Input<float>({}, {0, 0}).Input<int32_t>({3, 0}, {2});
  EXPECT_TRUE(none.Run().ok());
}

TEST(ScatterNd, RepeatedCoordinatesAddUp) {
  OpRunner op("ScatterNd");
  op.Input<int32_t>({1, 1, 0}, {3, 1}).Input<int32_t>({5, 6, 7}, {3}).Input<int32_t>({3}, {1});
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{7, 11, 0}));
}

TEST(TensorScatterUpdate, TheLastUpdateCountsAndBadIndicesAreRefused) {
  OpRunner op("TensorScatterUpdate");
  op.Input<std::string>({"a", "b"}, {2}).Input<int64_t>({1, 1}, {2, 1}).Input<std::string>({"c", "d"}, {2});
  EXPECT_EQ(Values<std::string>(op.RunOne()), (std::vector<std::string>{"a", "d"}));
  for (const int64_t bad : {int64_t{2}, int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    OpRunner out("TensorScatterUpdate");
    out.Input<float>({1, 2}, {2}).Input<int64_t>({bad}, {1, 1}).Input<float>({3}, {1});
    EXPECT_EQ(out.Run().status().code(), kInvalid) << bad;
    out.With("bad_indices_policy", "IGNORE");
    EXPECT_EQ(Values<float>(out.RunOne()), (Floats{1, 2})) << bad;
  }
}

absl::StatusOr<Tensor> Segment(const char* name, Floats data, Ints ids) {
  const int64_t n = static_cast<int64_t>(ids.size());
  OpRunner op(name);
  op.Input<float>(std::move(data), {n}).Input<int32_t>(std::move(ids), {n});
  return op.RunOne();
}

TEST(SegmentOps, L23_GapsAreZeroButOnesInProducts) {
  EXPECT_EQ(Values<float>(Segment("SegmentMax", {-3, -2, -5}, {0, 0, 2})), (Floats{-2, 0, -5}));
  EXPECT_EQ(Values<float>(Segment("SegmentMean", {1, 2, 5}, {0, 0, 2})), (Floats{1.5f, 0, 5}));
  EXPECT_EQ(Values<float>(Segment("SegmentProd", {2, 3, 5}, {0, 0, 2})), (Floats{6, 1, 5}));
}

TEST(SegmentOps, IdsMustNotFallOrBeNegative) {
  EXPECT_EQ(Segment("SegmentSum", {1, 2}, {1, 0}).status().code(), kInvalid);
  EXPECT_EQ(Segment("SegmentSum", {1, 2}, {-1, 0}).status().code(), kInvalid);
  EXPECT_EQ(Values<float>(Segment("SegmentSum", {}, {})), Floats{});
}

TEST(UnsortedSegmentOps, L23_MissingIdsHoldTheEndsOfTheType) {
  OpRunner op("UnsortedSegmentMax");
  op.Input<float>({1, 7, 3}, {3}).Input<int32_t>({2, -1, 2}, {3}).Scalar<int32_t>(3);
  const float lowest = std::numeric_limits<float>::lowest();
  EXPECT_EQ(Values<float>(op.RunOne()), (Floats{lowest, lowest, 3}));
  OpRunner high("UnsortedSegmentMin");
  high.Input<int8_t>({1}, {1}).Input<int32_t>({0}, {1}).Scalar<int32_t>(2);
  EXPECT_EQ(Values<int8_t>(high.RunOne()), (std::vector<int8_t>{1, 127}));
  OpRunner bad("UnsortedSegmentSum");
  bad.Input<float>({1}, {1}).Input<int32_t>({3}, {1}).Scalar<int32_t>(3);
  EXPECT_EQ(bad.Run().status().code(), kInvalid);
}

TEST(MatrixBandPart, L24_AnyNegativeBoundMeansAll) {
  OpRunner op("MatrixBandPart");
  op.Input<int32_t>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3}).Scalar<int64_t>(std::numeric_limits<int64_t>::min()).Scalar<int64_t>(0);
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{1, 0, 0, 4, 5, 0, 7, 8, 9}));
}

TEST(MatrixDiagPartV3, AlignsShortDiagonals) {
  const auto run = [](const char* align) {
    OpRunner op("MatrixDiagPartV3");
    op.Input<int32_t>({1, 2, 3, 4, 5, 6}, {2, 3}).Input<int32_t>({-1, 1}, {2}).Scalar<int32_t>(0).With("align", align);
    return Values<int32_t>(op.RunOne());
  };
  EXPECT_EQ(run("RIGHT_LEFT"), (Ints{2, 6, 1, 5, 4, 0}));
  EXPECT_EQ(run("LEFT_RIGHT"), (Ints{2, 6, 1, 5, 0, 4}));
}

TEST(MatrixDiagV3, RefusesSizesThatDoNotFit) {
  for (const auto& [rows, cols] : std::vector<std::pair<int32_t, int32_t>>{{1, -1}, {4, 4}, {-2, -1}}) {
    OpRunner op("MatrixDiagV3");
    op.Input<float>({1, 2}, {2}).Scalar<int32_t>(0).Scalar(rows).Scalar(cols).Scalar(0.0f);
    EXPECT_EQ(op.Run().status().code(), kInvalid) << rows << " " << cols;
  }
}

TEST(SpaceToBatchNd, GoesRoundWithPaddingAndCrops) {
  OpRunner there("SpaceToBatchND");
  there.Input<int32_t>({1, 2, 3, 4, 5, 6}, {1, 3, 2}).Input<int32_t>({2, 3}, {2}).Input<int32_t>({1, 0, 0, 1}, {2, 2});
  EXPECT_EQ(there.Run().status().code(), absl::StatusCode::kOk);
  OpRunner back("BatchToSpaceND");
  back.Input(*there.RunOne()).Input<int32_t>({2, 3}, {2}).Input<int32_t>({1, 0, 0, 1}, {2, 2});
  EXPECT_EQ(Values<int32_t>(back.RunOne()), (Ints{1, 2, 3, 4, 5, 6}));
}

TEST(MirrorPad, ShowsTheEdgeOnceOrTwice) {
  const auto run = [](const char* mode) {
    OpRunner op("MirrorPad");
    op.Input<int32_t>({1, 2, 3}, {3}).Input<int32_t>({2, 1}, {1, 2}).With("mode", mode);
    return Values<int32_t>(op.RunOne());
  };
  EXPECT_EQ(run("REFLECT"), (Ints{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(run("SYMMETRIC"), (Ints{2, 1, 1, 2, 3, 3}));
  OpRunner far("MirrorPad");
  far.Input<int32_t>({1, 2, 3}, {3}).Input<int32_t>({3, 0}, {1, 2}).With("mode", "REFLECT");
  EXPECT_EQ(far.Run().status().code(), kInvalid);
}

TEST(BroadcastGradientArgs, SharedOnesAreSummedByBoth) {
  OpRunner op("BroadcastGradientArgs");
  op.Input<int32_t>({3, 1, 4}, {3}).Input<int32_t>({1, 4}, {2});
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values<int32_t>((*out)[0]), (Ints{1}));
  EXPECT_EQ(Values<int32_t>((*out)[1]), (Ints{0, 1}));
}

TEST(Roll, ShiftsWrapAndKeep32Bits) {
  OpRunner op("Roll");
  op.Input<int32_t>({1, 2, 3}, {3}).Input<int64_t>({(int64_t{1} << 40) - 5, 1}, {2}).Input<int32_t>({0, -1}, {2});
  // -5 is 1 modulo 3, so the shifts are 1 and 1.
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{2, 3, 1}));
}

absl::StatusOr<Tensor> Einsum(const char* equation, Floats a, std::initializer_list<int64_t> a_dims, Floats b,
                              std::initializer_list<int64_t> b_dims) {
  OpRunner op("Einsum");
  op.Input<float>(std::move(a), a_dims).Input<float>(std::move(b), b_dims).With("equation", equation);
  return op.RunOne();
}

TEST(Einsum, DiagonalsSumsAndBroadcasting) {
  EXPECT_EQ(Values<float>(Einsum("iij,j->i", {1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}, {1, 10}, {2})), (Floats{21, 87}));
  EXPECT_EQ(Values<float>(Einsum("ij,k->", {1, 2, 3, 4}, {2, 2}, {1, 2}, {2})), Floats{30});
  EXPECT_EQ(Values<float>(Einsum("...i,...i->...", {1, 2}, {1, 2}, {1, 1, 2, 2}, {2, 2})), (Floats{3, 6}));
  EXPECT_EQ(Values<float>(Einsum("i,i->ii", {1, 2}, {2}, {3, 4}, {2})), (Floats{3, 0, 0, 8}));
  EXPECT_EQ(Values<float>(Einsum("ij,jk->ik", {}, {2, 0}, {}, {0, 1})), (Floats{0, 0}));
}

TEST(Einsum, RefusesBadEquationsAndShapes) {
  for (const char* bad : {"ij,jk", "ij->ij", "ij,jk->il", "i1,jk->ik", "......,j->j", "ij,jk->ik->i", "i..,jk->k"}) {
    EXPECT_EQ(Einsum(bad, {1}, {1, 1}, {1}, {1, 1}).status().code(), kInvalid) << bad;
  }
  EXPECT_EQ(Einsum("ij,jk->ik", {1, 2}, {1, 2}, {1, 2, 3}, {3, 1}).status().code(), kInvalid);
}

TEST(GradientOps, L19_NoGradientInMeansNoneOut) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"}) {
    OpRunner op(name);
    op.Input<float>({inf, nan, 0}, {3}).Input<float>({0, 0, 0}, {3});
    EXPECT_EQ(Values<float>(op.RunOne()), (Floats{0, 0, 0})) << name;
  }
}

TEST(GradientOps, ShapesMustAgree) {
  OpRunner op("ReluGrad");
  op.Input<float>({1, 2}, {2}).Input<float>({1, 2}, {1, 2});
  EXPECT_EQ(op.Run().status().code(), kInvalid);
}

TEST(ShiftOps, DistancesOutsideOfTheWidthCountAsTheNearestInside) {
  OpRunner op("LeftShift");
  op.Input<int8_t>({1, 1, -1}, {3}).Input<int8_t>({100, -5, 7}, {3});
  EXPECT_EQ(Values<int8_t>(op.RunOne()), (std::vector<int8_t>{-128, 1, -128}));
}

TEST(TruncateOps, L16_DivisionByZeroAndByMinusOne) {
  OpRunner op("TruncateDiv");
  op.Input<int32_t>({std::numeric_limits<int32_t>::min(), -7}, {2}).Input<int32_t>({-1, 2}, {2});
  EXPECT_EQ(Values<int32_t>(op.RunOne()), (Ints{std::numeric_limits<int32_t>::min(), -3}));
  OpRunner zero("Mod");
  zero.Input<int32_t>({1}, {1}).Input<int32_t>({0}, {1});
  EXPECT_EQ(zero.Run().status().code(), kInvalid);
}

}  // namespace
}  // namespace thalweg
