// Random numbers: the generator's known answers, ranges, and that parts of a stream do not overlap. Number for number
// comparison with TensorFlow is in the conformance cases (ops-random).
#include <gtest/gtest.h>

#include <set>

#include "thalweg/ops/common/philox.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// From the test vectors that come with the generator's publication.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox(0, 0, 0)(), (Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(Philox(ones, ones, ones)(), (Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, SkippingIsCounting) {
  Philox counted(7, ~uint64_t{0} - 1, 3), skipped = counted;  // the lower half of the counter overflows on the way
  for (int i = 0; i < 5; ++i) counted();
  skipped.Skip(5);
  EXPECT_EQ(counted(), skipped());
}

TEST(StatelessRandomUniform, FillsAnySizeFromOneStream) {
  absl::StatusOr<Tensor> all;
  for (const int32_t size : {9, 8, 5, 1, 0}) {
    OpRunner op("StatelessRandomUniform");
    op.Input<int32_t>({size}, {1}).Input<int64_t>({1, 2}, {2}).With("dtype", DType::kFloat32);
    const absl::StatusOr<Tensor> part = op.RunOne();
    ASSERT_TRUE(part.ok()) << part.status();
    if (!all.ok()) all = part;
    for (int32_t i = 0; i < size; ++i) {
      EXPECT_EQ(part->flat<float>()[i], all->flat<float>()[i]);
      EXPECT_GE(part->flat<float>()[i], 0.0f);
      EXPECT_LT(part->flat<float>()[i], 1.0f);
    }
  }
}

TEST(StatelessRandomUniformInt, StaysInAndReachesItsRange) {
  OpRunner op("StatelessRandomUniformInt");
  op.Input<int32_t>({200}, {1}).Input<int64_t>({3, 4}, {2}).Scalar<int64_t>(-2).Scalar<int64_t>(2);
  const absl::StatusOr<Tensor> out = op.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  const std::set<int64_t> seen(out->flat<int64_t>().begin(), out->flat<int64_t>().end());
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1}));
}

TEST(StatelessRandomUniformInt, EmptyRangesAreRefusedUnlessNothingIsDrawn) {
  for (const int32_t size : {1, 0}) {
    OpRunner op("StatelessRandomUniformInt");
    op.Input<int32_t>({size}, {1}).Input<int64_t>({3, 4}, {2}).Scalar<int32_t>(5).Scalar<int32_t>(5);
    EXPECT_EQ(op.Run().status().code(), size == 0 ? absl::StatusCode::kOk : kInvalid);
  }
}

TEST(StatelessTruncatedNormal, StaysWithinTwoDeviations) {
  OpRunner op("StatelessTruncatedNormal");
  op.Input<int32_t>({1000}, {1}).Input<int64_t>({3, 4}, {2}).With("dtype", DType::kFloat64);
  const absl::StatusOr<Tensor> out = op.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  for (const double v : out->flat<double>()) EXPECT_LT(std::abs(v), 2.0);
}

TEST(StatelessRandomUniformV2, RefusesOtherAlgorithmsAndShortKeys) {
  const auto run = [](std::vector<uint64_t> key, int32_t algorithm) {
    const int64_t length = static_cast<int64_t>(key.size());
    OpRunner op("StatelessRandomUniformV2");
    op.Input<int32_t>({3}, {1}).Input<uint64_t>(std::move(key), {length}).Input<uint64_t>({0, 0}, {2}).Scalar(algorithm);
    return op.Run().status().code();
  };
  EXPECT_EQ(run({1}, 1), absl::StatusCode::kOk);
  EXPECT_EQ(run({1}, 3), absl::StatusCode::kOk);
  EXPECT_EQ(run({1}, 2), kInvalid);
  EXPECT_EQ(run({1, 2}, 1), kInvalid);
  EXPECT_EQ(run({}, 1), kInvalid);
}

}  // namespace
}  // namespace thalweg
