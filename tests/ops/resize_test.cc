#include "gtest/gtest.h"
#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg::testing {
namespace {

OpRunner Resize(const char* op, int32_t height, int32_t width, const char* flag = nullptr) {
  OpRunner runner(op);
  if (flag) runner.With(flag, true);
  runner.Input<float>({0, 1, 2, 3}, {1, 2, 2, 1}).Input<int32_t>({height, width}, {2});
  return runner;
}

std::vector<float> FirstRow(OpRunner op) {
  const absl::StatusOr<Tensor> out = op.RunOne();
  EXPECT_TRUE(out.ok()) << out.status();
  std::vector<float> row = Values<float>(*out);
  row.resize(out->dim(2));
  return row;
}

// Rows that TensorFlow 2.21 gives for the image {0, 1; 2, 3}.
TEST(ResizeNearestNeighbor, ThreeWaysOfSampling) {
  EXPECT_EQ(FirstRow(Resize("ResizeNearestNeighbor", 5, 5)), (std::vector<float>{0, 0, 0, 1, 1}));
  EXPECT_EQ(FirstRow(Resize("ResizeNearestNeighbor", 5, 5, "align_corners")), (std::vector<float>{0, 0, 1, 1, 1}));
  EXPECT_EQ(FirstRow(Resize("ResizeNearestNeighbor", 5, 5, "half_pixel_centers")), (std::vector<float>{0, 0, 1, 1, 1}));
}

TEST(ResizeBilinear, ThreeWaysOfSampling) {
  const auto expect = [](const char* flag, const std::vector<float>& expected) {
    ExpectNear(*Resize("ResizeBilinear", 3, 5, flag).RunOne(), expected);
  };
  expect(nullptr,
         {0, 0.4f, 0.8f, 1, 1, 1.3333334f, 1.7333333f, 2.1333334f, 2.3333335f, 2.3333335f, 2, 2.4f, 2.8f, 3, 3});
  expect("align_corners", {0, 0.25f, 0.5f, 0.75f, 1, 1, 1.25f, 1.5f, 1.75f, 2, 2, 2.25f, 2.5f, 2.75f, 3});
  expect("half_pixel_centers", {0, 0.1f, 0.5f, 0.9f, 1, 1, 1.1f, 1.5f, 1.9f, 2, 2, 2.1f, 2.5f, 2.9f, 3});
}

template <typename T>
class ResizeTypes : public ::testing::Test {};
using ImageTypes =
    ::testing::Types<int8_t, uint8_t, int16_t, uint16_t, int32_t, int64_t, half, bfloat16, float, double>;
TYPED_TEST_SUITE(ResizeTypes, ImageTypes);

TYPED_TEST(ResizeTypes, EveryType) {
  std::vector<TypeParam> image;
  for (int i = 0; i < 12; ++i) image.push_back(TypeParam(static_cast<float>(i)));
  OpRunner nearest("ResizeNearestNeighbor"), bilinear("ResizeBilinear");
  nearest.Input(MakeTensor(image, {1, 2, 2, 3})).template Input<int32_t>({1, 3}, {2});
  const Tensor n = *nearest.RunOne();
  std::vector<TypeParam> expected;
  for (float v : {0, 1, 2, 0, 1, 2, 3, 4, 5}) expected.push_back(TypeParam(v));
  EXPECT_EQ(Values<TypeParam>(n), expected);
  bilinear.With("align_corners", true).Input(MakeTensor(image, {1, 2, 2, 3})).template Input<int32_t>({1, 3}, {2});
  ExpectNear(*bilinear.RunOne(), {0, 1, 2, 1.5f, 2.5f, 3.5f, 3, 4, 5});
}

TEST(Resize, EmptyAndMalformed) {
  for (const char* op : {"ResizeBilinear", "ResizeNearestNeighbor"}) {
    OpRunner empty(op);
    ExpectShape(*empty.Input(MakeTensor<float>({}, {0, 2, 2, 1})).Input<int32_t>({3, 3}, {2}).RunOne(), {0, 3, 3, 1});
    const auto code = [op](std::initializer_list<int64_t> images, std::vector<int32_t> size,
                           std::initializer_list<int64_t> size_dims, bool both = false) {
      OpRunner bad(op);
      if (both) bad.With("align_corners", true).With("half_pixel_centers", true);
      bad.Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(images))).Input(MakeTensor(std::move(size), size_dims));
      return bad.RunOne().status().code();
    };
    constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
    EXPECT_EQ(code({3, 4, 2}, {2, 2}, {2}), kInvalid);
    EXPECT_EQ(code({1, 3, 4, 2}, {0, 2}, {2}), kInvalid);
    EXPECT_EQ(code({1, 3, 4, 2}, {2, -1}, {2}), kInvalid);
    EXPECT_EQ(code({1, 3, 4, 2}, {2, 2, 2}, {3}), kInvalid);
    EXPECT_EQ(code({1, 3, 4, 2}, {2, 2}, {1, 2}), kInvalid);
    EXPECT_EQ(code({1, 3, 4, 2}, {2}, {}), kInvalid);
    EXPECT_EQ(code({1, 0, 4, 2}, {2, 2}, {2}), kInvalid);
    EXPECT_EQ(code({1, 3, 4, 0}, {2, 2}, {2}), kInvalid);
    EXPECT_EQ(code({1, 3, 4, 2}, {2, 2}, {2}, true), kInvalid);
  }
}

}  // namespace
}  // namespace thalweg::testing
