// BiasAdd, FusedBatchNorm, Softmax, LogSoftmax, LRN, InTopK.
#include <cmath>
#include <complex>

#include "gtest/gtest.h"
#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg::testing {
namespace {

template <typename T>
class BiasAdds : public ::testing::Test {};
using BiasTypes = ::testing::Types<half, bfloat16, float, double, int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t,
                                   int64_t, uint64_t, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BiasAdds, BiasTypes);

TYPED_TEST(BiasAdds, EveryTypeAndLayout) {
  std::vector<TypeParam> value, bias{TypeParam(10.0f), TypeParam(20.0f), TypeParam(30.0f)}, last, first;
  for (int i = 0; i < 18; ++i) value.push_back(TypeParam(static_cast<float>(i)));
  for (int i = 0; i < 18; ++i) last.push_back(TypeParam(static_cast<float>(i + 10 * (i % 3 + 1))));
  for (int i = 0; i < 18; ++i) first.push_back(TypeParam(static_cast<float>(i + 10 * (i / 2 % 3 + 1))));
  OpRunner nhwc("BiasAdd");
  EXPECT_EQ(Values<TypeParam>(*nhwc.Input(MakeTensor(value, {3, 2, 3})).Input(MakeTensor(bias, {3})).RunOne()), last);
  OpRunner nchw("BiasAdd");
  EXPECT_EQ(
      Values<TypeParam>(
          *nchw.With("data_format", "NCHW").Input(MakeTensor(value, {3, 3, 2})).Input(MakeTensor(bias, {3})).RunOne()),
      first);
}

TEST(BiasAdd, WrapsAndRefuses) {
  OpRunner wraps("BiasAdd");
  EXPECT_EQ(wraps.Input<int8_t>({127}, {1, 1}).Input<int8_t>({1}, {1}).RunOne()->flat<int8_t>()[0], -128);
  const auto code = [](std::initializer_list<int64_t> value, std::initializer_list<int64_t> bias, const char* format) {
    OpRunner op("BiasAdd");
    op.With("data_format", format)
        .Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(value)))
        .Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(bias)));
    return op.RunOne().status().code();
  };
  EXPECT_EQ(code({2, 3}, {4}, "NHWC"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({2, 3}, {1, 3}, "NHWC"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({3}, {3}, "NHWC"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({2, 3}, {}, "NHWC"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({2, 3, 4, 5}, {5}, "NCHW"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({3, 0}, {0}, "NHWC"), absl::StatusCode::kOk);
}

// Values that TensorFlow 2.21 gives.
const std::vector<float> kTwelve = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

OpRunner BatchNorm(const char* op, bool training, std::vector<float> mean, std::vector<float> variance) {
  OpRunner runner(op);
  const int64_t n = static_cast<int64_t>(mean.size());
  runner.With("is_training", training).Input(MakeTensor(kTwelve, {1, 2, 2, 3}));
  runner.Input<float>({2, 2, 2}, {3})
      .Input<float>({1, 1, 1}, {3})
      .Input(MakeTensor(std::move(mean), {n}))
      .Input(MakeTensor(std::move(variance), {n}));
  return runner;
}

TEST(FusedBatchNorm, Training) {
  for (const char* op : {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) {
    OpRunner runner = BatchNorm(op, true, {}, {});
    const absl::StatusOr<std::vector<Tensor>> out = runner.Run();
    ASSERT_TRUE(out.ok()) << out.status();
    const float a = -1.6832695f, b = 0.10557681f, c = 1.8944232f, d = 3.6832695f;
    ExpectNear((*out)[0], {a, a, a, b, b, b, c, c, c, d, d, d});
    ExpectNear((*out)[1], {4.5f, 5.5f, 6.5f});
    ExpectNear((*out)[2], {15, 15, 15});
    ExpectNear((*out)[3], {4.5f, 5.5f, 6.5f});
    ExpectNear((*out)[4], {11.25f, 11.25f, 11.25f});
    if (out->size() > 5) ExpectShape((*out)[5], {});
  }
}

TEST(FusedBatchNorm, TrainingWithMovingAverage) {
  OpRunner runner = BatchNorm("FusedBatchNormV3", true, {1, 1, 1}, {3, 3, 3});
  const absl::StatusOr<std::vector<Tensor>> out = runner.With("exponential_avg_factor", 0.25).Run();
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectNear((*out)[1], {1.875f, 2.125f, 2.375f});
  ExpectNear((*out)[2], {6, 6, 6});
}

TEST(FusedBatchNorm, Inference) {
  OpRunner runner = BatchNorm("FusedBatchNorm", false, {1, 1, 1}, {3, 3, 3});
  const absl::StatusOr<std::vector<Tensor>> out = runner.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  std::vector<float> expected;
  for (float x : kTwelve) expected.push_back((x - 1) * 2 / std::sqrt(3.0001f) + 1);
  ExpectNear((*out)[0], expected);
  ExpectNear((*out)[1], {1, 1, 1});
  ExpectNear((*out)[2], {3, 3, 3});
}

TEST(FusedBatchNorm, LayoutsAgree) {
  for (bool training : {false, true}) {
    const std::vector<float> x = Inexact(2 * 3 * 4 * 5);
    OpRunner last("FusedBatchNormV3"), first("FusedBatchNormV3");
    std::vector<float> x_first(x.size());
    for (int n = 0; n < 2; ++n)
      for (int p = 0; p < 12; ++p)
        for (int c = 0; c < 5; ++c) x_first[(n * 5 + c) * 12 + p] = x[(n * 12 + p) * 5 + c];
    last.Input(MakeTensor(x, {2, 3, 4, 5}));
    first.With("data_format", "NCHW").Input(MakeTensor(x_first, {2, 5, 3, 4}));
    for (OpRunner* op : {&last, &first}) {
      op->With("is_training", training);
      for (uint32_t i = 1; i <= 4; ++i) {
        std::vector<float> v = Inexact(5, i);
        for (float& f : v) f = std::fabs(f) + 0.5f;
        op->Input(MakeTensor(v, {5}));
      }
    }
    const std::vector<Tensor> a = *last.Run(), b = *first.Run();
    for (int n = 0; n < 2; ++n)
      for (int p = 0; p < 12; ++p)
        for (int c = 0; c < 5; ++c)
          EXPECT_EQ(a[0].flat<float>()[(n * 12 + p) * 5 + c], b[0].flat<float>()[(n * 5 + c) * 12 + p]);
    EXPECT_TRUE(SameTensor(a[1], b[1]));
    EXPECT_TRUE(SameTensor(a[2], b[2]));
  }
}

TEST(FusedBatchNorm, EmptyImagesHaveNoStatistics) {
  for (bool training : {false, true}) {
    OpRunner op("FusedBatchNormV3");
    op.With("is_training", training).Input(MakeTensor<float>({}, {2, 0, 3, 4}));
    for (int i = 0; i < 4; ++i) op.Input<float>({1, 1, 1, 1}, {4});
    const std::vector<Tensor> out = *op.Run();
    ExpectShape(out[0], {2, 0, 3, 4});
    ExpectNear(out[1], {NAN, NAN, NAN, NAN});
    ExpectNear(out[2], {NAN, NAN, NAN, NAN});
  }
}

TEST(FusedBatchNorm, MalformedInputs) {
  const auto code = [](std::initializer_list<int64_t> x, int64_t scale, int64_t offset, int64_t mean, bool training,
                       float factor) {
    OpRunner op("FusedBatchNorm");
    op.With("is_training", training)
        .With("exponential_avg_factor", factor)
        .Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(x)));
    for (int64_t n : {scale, offset, mean, mean}) op.Input(MakeTensor(std::vector<float>(n, 1.0f), {n}));
    return op.Run().status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code({2, 3, 3, 4}, 3, 4, 4, false, 1), kInvalid);
  EXPECT_EQ(code({2, 3, 3, 4}, 4, 5, 4, false, 1), kInvalid);
  EXPECT_EQ(code({2, 3, 3, 4}, 4, 4, 3, false, 1), kInvalid);
  EXPECT_EQ(code({2, 3, 3, 4}, 4, 4, 0, false, 1), kInvalid);
  EXPECT_EQ(code({2, 3, 3, 4}, 4, 4, 0, true, 0.5), kInvalid);
  EXPECT_EQ(code({3, 3, 4}, 4, 4, 4, false, 1), kInvalid);
}

TEST(Softmax, KnownRowsAndLongOnes) {
  OpRunner op("Softmax");
  const Tensor out = *op.Input<float>({1, 2, 3, 1000, 1000, -1000}, {2, 3}).RunOne();
  ExpectNear(out, {0.09003057f, 0.24472847f, 0.66524096f, 0.5f, 0.5f, 0});
  OpRunner rows("Softmax");
  const std::vector<float> in = Inexact(40 * 1001);
  const Tensor wide = *rows.Input(MakeTensor(in, {40, 1001})).RunOne();
  for (int r = 0; r < 40; ++r) {
    double sum = 0;
    for (int c = 0; c < 1001; ++c) sum += std::exp(static_cast<double>(in[r * 1001 + c]));
    for (int c = 0; c < 1001; ++c) {
      const double expected = std::exp(static_cast<double>(in[r * 1001 + c])) / sum;
      ASSERT_NEAR(wide.flat<float>()[r * 1001 + c], expected, 1e-6 * expected);
    }
  }
}

TEST(Softmax, SpecialValues) {
  const std::vector<float> rows = {1, INFINITY, 2, -INFINITY, -INFINITY, -INFINITY, -INFINITY, 1, 2, NAN, 1, 2};
  OpRunner softmax("Softmax"), log_softmax("LogSoftmax");
  ExpectNear(*softmax.Input(MakeTensor(rows, {4, 3})).RunOne(),
             {NAN, NAN, NAN, NAN, NAN, NAN, 0, 0.26894143f, 0.7310586f, NAN, NAN, NAN});
  const Tensor log = *log_softmax.Input(MakeTensor(rows, {4, 3})).RunOne();
  for (int i : {0, 1, 2, 3, 4, 5, 9, 10, 11}) EXPECT_TRUE(std::isnan(log.flat<float>()[i])) << i;
  EXPECT_EQ(log.flat<float>()[6], -INFINITY);
  EXPECT_NEAR(log.flat<float>()[7], -1.3132616f, 1e-6);
}

TEST(Softmax, TypesAndShapes) {
  OpRunner in_double("LogSoftmax");
  const Tensor d = *in_double.Input<double>({0, std::log(3.0)}, {2}).RunOne();
  EXPECT_NEAR(d.flat<double>()[0], std::log(0.25), 1e-15);
  OpRunner in_half("Softmax");
  EXPECT_EQ(float(in_half.Input<half>({half(2), half(2)}, {1, 2}).RunOne()->flat<half>()[1]), 0.5f);
  OpRunner in_bfloat("Softmax");
  EXPECT_EQ(float(in_bfloat.Input<bfloat16>({bfloat16(2), bfloat16(2)}, {1, 2}).RunOne()->flat<bfloat16>()[1]), 0.5f);
  for (const char* name : {"Softmax", "LogSoftmax"}) {
    OpRunner empty(name), scalar(name);
    ExpectShape(*empty.Input(MakeTensor<float>({}, {3, 0})).RunOne(), {3, 0});
    EXPECT_EQ(scalar.Scalar(1.0f).RunOne().status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// Answers of TensorFlow 2.21.
TEST(InTopK, TiesAreInAndWhatIsNotFiniteIsNot) {
  const auto in = [](std::vector<float> row, int32_t target, int32_t k) {
    const int64_t classes = static_cast<int64_t>(row.size());
    OpRunner with_input("InTopKV2");
    const bool value = Values<bool>(*with_input.Input(MakeTensor(row, {1, classes})).Input<int32_t>({target}, {1}).Scalar<int32_t>(k).RunOne())[0];
    OpRunner with_attr("InTopK");
    with_attr.With("k", k).Input(MakeTensor(row, {1, classes})).Input<int64_t>({target}, {1});
    EXPECT_EQ(Values<bool>(*with_attr.RunOne())[0], value);
    return value;
  };
  EXPECT_TRUE(in({1, 2, 3, 3}, 2, 1));
  EXPECT_FALSE(in({1, 2, 3, 3}, 1, 2));
  EXPECT_TRUE(in({1, 2, 3, 3}, 1, 3));
  EXPECT_TRUE(in({0, 0, 0}, 1, 1));
  EXPECT_TRUE(in({1, 2}, 0, 5));
  EXPECT_FALSE(in({1, 2, NAN}, 1, 3));
  EXPECT_FALSE(in({1, INFINITY}, 1, 2));
  EXPECT_FALSE(in({1, 2, 3}, 3, 3));
  EXPECT_FALSE(in({1, 2, 3}, -1, 3));
  EXPECT_FALSE(in({1, 2, 3}, 2, 0));
  OpRunner rows("InTopKV2");
  rows.Input<float>({1, 2}, {1, 2}).Input<int32_t>({0, 1}, {2}).Scalar<int32_t>(1);
  EXPECT_EQ(rows.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Lrn, IsItsDefinition) {
  const std::vector<float> in = Inexact(2 * 2 * 3 * 20);
  const struct {
    int radius;
    float bias, alpha, beta;
  } kParameters[] = {{5, 1, 1, 0.5f}, {2, 2, 0.01f, 0.75f}, {0, 1, 1, 0.5f}, {30, 1, 0.5f, 1}};
  for (const auto& p : kParameters) {
    OpRunner op("LRN");
    op.With("depth_radius", p.radius).With("bias", p.bias).With("alpha", p.alpha).With("beta", p.beta);
    std::vector<float> expected(in.size());
    for (int pixel = 0; pixel < 12; ++pixel)
      for (int c = 0; c < 20; ++c) {
        double sum = 0;
        for (int d = std::max(0, c - p.radius); d <= std::min(19, c + p.radius); ++d)
          sum += in[pixel * 20 + d] * in[pixel * 20 + d];
        expected[pixel * 20 + c] = static_cast<float>(in[pixel * 20 + c] / std::pow(p.bias + p.alpha * sum, p.beta));
      }
    ExpectNear(*op.Input(MakeTensor(in, {2, 2, 3, 20})).RunOne(), expected, 2e-6);
  }
}

TEST(Lrn, EmptyAndMalformed) {
  OpRunner empty("LRN"), rank("LRN"), radius("LRN");
  ExpectShape(*empty.Input(MakeTensor<float>({}, {0, 2, 2, 3})).RunOne(), {0, 2, 2, 3});
  EXPECT_EQ(rank.Input(MakeTensor<float>({1}, {1, 1, 1})).RunOne().status().code(), absl::StatusCode::kInvalidArgument);
  radius.With("depth_radius", -1).Input(MakeTensor<float>({1}, {1, 1, 1, 1}));
  EXPECT_EQ(radius.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thalweg::testing
