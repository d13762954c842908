#include <limits>

#include "gtest/gtest.h"
#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg::testing {
namespace {

using List = std::vector<int64_t>;

OpRunner Pool(const char* op, List ksize, List strides, const char* padding, const char* format = "NHWC") {
  OpRunner runner(op);
  runner.With("ksize", MakeListAttr(std::move(ksize)))
      .With("strides", MakeListAttr(std::move(strides)))
      .With("padding", padding)
      .With("data_format", format);
  return runner;
}

const std::vector<float> kImage = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // 3 rows, 4 columns

TEST(MaxPool, ValidAndSame) {
  OpRunner valid = Pool("MaxPool", {1, 2, 2, 1}, {1, 1, 2, 1}, "VALID");
  const Tensor a = *valid.Input(MakeTensor(kImage, {1, 3, 4, 1})).RunOne();
  ExpectShape(a, {1, 2, 2, 1});
  EXPECT_EQ(Values<float>(a), (std::vector<float>{6, 8, 10, 12}));
  OpRunner same = Pool("MaxPool", {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
  const Tensor b = *same.Input(MakeTensor(kImage, {1, 3, 4, 1})).RunOne();
  EXPECT_EQ(Values<float>(b), (std::vector<float>{6, 8, 10, 12}));
}

TEST(MaxPool, ChannelsFirstL25) {
  OpRunner op = Pool("MaxPool", {1, 1, 2, 2}, {1, 1, 1, 2}, "VALID", "NCHW");
  std::vector<float> two_channels = kImage;
  for (float v : kImage) two_channels.push_back(-v);
  const Tensor out = *op.Input(MakeTensor(two_channels, {1, 2, 3, 4})).MayBeRefusedByShape().RunOne();
  ExpectShape(out, {1, 2, 2, 2});
  EXPECT_EQ(Values<float>(out), (std::vector<float>{6, 8, 10, 12, -1, -3, -5, -7}));
}

template <typename T>
class MaxPoolTypes : public ::testing::Test {};
using PoolTypes = ::testing::Types<half, bfloat16, float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t>;
TYPED_TEST_SUITE(MaxPoolTypes, PoolTypes);

TYPED_TEST(MaxPoolTypes, EveryType) {
  std::vector<TypeParam> image;
  for (float v : kImage) image.push_back(TypeParam(v));
  OpRunner op = Pool("MaxPool", {1, 3, 1, 1}, {1, 1, 1, 1}, "SAME");
  const Tensor out = *op.Input(MakeTensor(image, {1, 3, 2, 2})).RunOne();
  std::vector<TypeParam> expected;
  for (float v : {5, 6, 7, 8, 9, 10, 11, 12, 9, 10, 11, 12}) expected.push_back(TypeParam(v));
  EXPECT_EQ(Values<TypeParam>(out), expected);
}

TEST(MaxPool, ExplicitPadding) {
  OpRunner op = Pool("MaxPool", {1, 2, 2, 1}, {1, 2, 2, 1}, "EXPLICIT");
  op.With("explicit_paddings", MakeListAttr(List{0, 0, 1, 0, 1, 1, 0, 0}));
  const Tensor out = *op.Input(MakeTensor(kImage, {1, 3, 4, 1})).RunOne();
  ExpectShape(out, {1, 2, 3, 1});
  EXPECT_EQ(Values<float>(out), (std::vector<float>{1, 3, 4, 9, 11, 12}));
}

// A window starts from the lowest finite value: NaN never wins, and -inf never comes out.
TEST(MaxPool, SpecialValues) {
  OpRunner op = Pool("MaxPool", {1, 2, 1, 1}, {1, 2, 1, 1}, "VALID");
  const Tensor out = *op.Input<float>({NAN, NAN, -INFINITY, 1, NAN, -INFINITY}, {1, 2, 3, 1}).RunOne();
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  EXPECT_EQ(Values<float>(out), (std::vector<float>{1, kLowest, kLowest}));
  OpRunner in_half = Pool("MaxPool", {1, 1, 1, 1}, {1, 1, 1, 1}, "VALID");
  EXPECT_EQ(float(in_half.Input<half>({half(-INFINITY)}, {1, 1, 1, 1}).RunOne()->flat<half>()[0]), -65504.0f);
}

TEST(MaxPool, OverChannels) {
  OpRunner op = Pool("MaxPool", {1, 1, 1, 3}, {1, 1, 1, 3}, "VALID");
  const Tensor out = *op.Input<float>({1, 5, 2, -3, -1, -2}, {1, 1, 1, 6}).RunOne();
  ExpectShape(out, {1, 1, 1, 2});
  EXPECT_EQ(Values<float>(out), (std::vector<float>{5, -1}));
  const auto code = [](List ksize, List strides, int64_t channels) {
    OpRunner bad = Pool("MaxPool", std::move(ksize), std::move(strides), "VALID");
    return bad.Input(MakeTensor(std::vector<float>(4 * channels), {1, 2, 2, channels})).RunOne().status().code();
  };
  EXPECT_EQ(code({1, 1, 1, 3}, {1, 1, 1, 3}, 5), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({1, 1, 1, 3}, {1, 1, 1, 2}, 6), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(code({1, 2, 2, 3}, {1, 2, 2, 3}, 6), absl::StatusCode::kUnimplemented);
}

TEST(MaxPoolV2, WindowsFromInputs) {
  OpRunner op("MaxPoolV2");
  op.With("padding", "VALID")
      .Input(MakeTensor(kImage, {1, 3, 4, 1}))
      .Input<int32_t>({1, 2, 2, 1}, {4})
      .Input<int32_t>({1, 1, 2, 1}, {4});
  EXPECT_EQ(Values<float>(*op.RunOne()), (std::vector<float>{6, 8, 10, 12}));
  OpRunner zero("MaxPoolV2");
  zero.With("padding", "VALID")
      .Input(MakeTensor(kImage, {1, 3, 4, 1}))
      .Input<int32_t>({1, 0, 2, 1}, {4})
      .Input<int32_t>({1, 1, 2, 1}, {4});
  EXPECT_EQ(zero.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(AvgPool, CountsOnlyWhatIsInside) {
  OpRunner op = Pool("AvgPool", {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
  const Tensor out = *op.Input(MakeTensor(kImage, {1, 3, 4, 1})).RunOne();
  EXPECT_EQ(Values<float>(out), (std::vector<float>{3.5f, 5.5f, 9.5f, 11.5f}));
  OpRunner first = Pool("AvgPool", {1, 1, 2, 2}, {1, 1, 2, 2}, "SAME", "NCHW");
  first.Input(MakeTensor(kImage, {1, 1, 3, 4})).MayBeRefusedByShape();
  EXPECT_EQ(Values<float>(*first.RunOne()), Values<float>(out));
}

TEST(AvgPool, RoundsOnceInHalf) {
  OpRunner op = Pool("AvgPool", {1, 1, 3, 1}, {1, 1, 3, 1}, "VALID");
  const Tensor out = *op.Input<half>({half(2048), half(1), half(1)}, {1, 1, 3, 1}).RunOne();
  EXPECT_EQ(float(out.flat<half>()[0]), float(half(2050.0f / 3)));
}

TEST(Pools, EmptyAndMalformed) {
  OpRunner no_batch = Pool("MaxPool", {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME");
  ExpectShape(*no_batch.Input(MakeTensor<float>({}, {0, 4, 4, 2})).RunOne(), {0, 2, 2, 2});
  OpRunner too_large = Pool("AvgPool", {1, 5, 5, 1}, {1, 1, 1, 1}, "VALID");
  too_large.Input(MakeTensor(std::vector<float>(32), {1, 4, 4, 2})).MayBeRefusedByShape();
  ExpectShape(*too_large.RunOne(), {1, 0, 0, 2});
  const auto code = [](const char* op, List ksize, const char* padding, const char* format,
                       std::initializer_list<int64_t> dims) {
    OpRunner bad = Pool(op, std::move(ksize), {1, 1, 1, 1}, padding, format);
    return bad.Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(dims))).RunOne().status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  for (const char* op : {"MaxPool", "AvgPool"}) {
    EXPECT_EQ(code(op, {1, 2, 2, 1}, "SAME", "NHWC", {4, 4, 2}), kInvalid);
    EXPECT_EQ(code(op, {1, 0, 2, 1}, "SAME", "NHWC", {1, 4, 4, 2}), kInvalid);
    EXPECT_EQ(code(op, {1, -1, 2, 1}, "SAME", "NHWC", {1, 4, 4, 2}), kInvalid);
    EXPECT_EQ(code(op, {1, int64_t{1} << 32, 2, 1}, "SAME", "NHWC", {1, 4, 4, 2}), kInvalid);
    EXPECT_EQ(code(op, {1, 1, 2, 2}, "VALID", "NCHW", {1, 1, 1, 1}), kInvalid);
    EXPECT_EQ(code(op, {2, 1, 1, 1}, "SAME", "NHWC", {2, 4, 4, 2}), absl::StatusCode::kUnimplemented);
  }
}

TEST(MaxPool, ExplicitPaddingMustBeSmallerThanTheWindow) {
  OpRunner op = Pool("MaxPool", {1, 3, 3, 1}, {1, 2, 2, 1}, "EXPLICIT");
  op.With("explicit_paddings", MakeListAttr(List{0, 0, 3, 0, 1, 1, 0, 0}))
      .Input(MakeTensor(std::vector<float>(50), {1, 5, 5, 2}));
  EXPECT_EQ(op.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thalweg::testing
