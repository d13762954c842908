// The reduction driver, ArgMax/ArgMin and running sums, against plain loops.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "gtest/gtest.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;

Tensor RandomFloats(std::initializer_list<int64_t> dims, uint32_t seed) {
  std::mt19937 random(seed);
  const Shape shape = Shape::Of(dims);
  std::vector<float> values(shape.num_elements());
  for (float& v : values) v = static_cast<float>(static_cast<int32_t>(random() % 2000) - 1000) / 128.0f;
  return *Tensor::Of<float>(std::move(values), shape);
}

// Sums over the axes marked in `mask`, element by element.
std::vector<double> PlainSums(const Tensor& x, uint32_t mask, int64_t outputs) {
  std::vector<double> sums(outputs, 0.0);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    int64_t rest = i, out = 0, stride = 1;
    for (int d = x.rank() - 1; d >= 0; --d) {
      const int64_t at = rest % x.dim(d);
      rest /= x.dim(d);
      if (mask >> d & 1) continue;
      out += at * stride;
      stride *= x.dim(d);
    }
    sums[out] += x.flat<float>()[i];
  }
  return sums;
}

void ExpectSumsOverEverySubset(std::initializer_list<int64_t> dims) {
  const Tensor x = RandomFloats(dims, 7);
  for (uint32_t mask = 0; mask < 1u << x.rank(); ++mask) {
    std::vector<int32_t> axes;
    for (int d = 0; d < x.rank(); ++d) {
      if (mask >> d & 1) axes.push_back(d % 2 ? d : d - x.rank());
    }
    OpRunner op("Sum");
    const int64_t n = static_cast<int64_t>(axes.size());
    op.Input(x).Input<int32_t>(axes, {n});
    absl::StatusOr<Tensor> out = op.RunOne();
    ASSERT_TRUE(out.ok()) << out.status();
    const std::vector<double> expected = PlainSums(x, mask, out->num_elements());
    for (int64_t i = 0; i < out->num_elements(); ++i) {
      ASSERT_EQ(out->flat<float>()[i], static_cast<float>(expected[i])) << "mask " << mask << " at " << i;
    }
  }
}

TEST(ReduceTest, SumsOverEverySubsetOfAxes) {
  ExpectSumsOverEverySubset({});
  ExpectSumsOverEverySubset({5});
  ExpectSumsOverEverySubset({1, 1});
  ExpectSumsOverEverySubset({3, 1, 40});
  ExpectSumsOverEverySubset({7, 5, 3});
  ExpectSumsOverEverySubset({2, 3, 4, 5, 6});
  ExpectSumsOverEverySubset({600, 3});
  ExpectSumsOverEverySubset({3, 700});
}

TEST(ReduceTest, SumsInChunks) {
  ExpectSumsOverEverySubset({100000});
  ExpectSumsOverEverySubset({50000, 3});
  ExpectSumsOverEverySubset({3, 50000});
  ExpectSumsOverEverySubset({40, 50, 60});
}

TEST(ReduceTest, HalfAccumulatesInFloat) {
  for (const std::initializer_list<int64_t> dims : {std::initializer_list<int64_t>{5000, 3}, {3, 5000}}) {
    std::vector<half> ones(15000, half(1));
    OpRunner op("Sum");
    op.Input(*Tensor::Of<half>(ones, Shape::Of(dims))).Scalar<int32_t>(*dims.begin() == 3 ? 1 : 0);
    absl::StatusOr<Tensor> out = op.RunOne();
    ASSERT_TRUE(out.ok()) << out.status();
    for (half sum : out->flat<half>()) EXPECT_EQ(static_cast<float>(sum), 5000.0f);
  }
}

TEST(ReduceTest, L17MeanOfSmallIntegersDoesNotWrap) {
  OpRunner op("Mean");
  op.Input<int8_t>({-100, -100, -99}, {3}).Scalar<int32_t>(0);
  EXPECT_EQ(op.RunOne()->flat<int8_t>()[0], -99);
  OpRunner bytes("Mean");
  bytes.Input<uint8_t>({200, 255}, {2}).Scalar<int32_t>(0);
  EXPECT_EQ(bytes.RunOne()->flat<uint8_t>()[0], 227);
}

TEST(ReduceTest, EmptyGivesTheIdentity) {
  const auto reduce = [](const char* op) {
    return *OpRunner(op).Input<float>({}, {2, 0}).Scalar<int32_t>(1).RunOne();
  };
  EXPECT_EQ(reduce("Sum").flat<float>()[1], 0);
  EXPECT_EQ(reduce("Prod").flat<float>()[1], 1);
  EXPECT_EQ(reduce("Max").flat<float>()[0], -std::numeric_limits<float>::infinity());
  EXPECT_EQ(reduce("Min").flat<float>()[0], std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(reduce("Mean").flat<float>()[0]));
  EXPECT_TRUE(OpRunner("All").Input<bool>({}, {0}).Scalar<int32_t>(0).RunOne()->flat<bool>()[0]);
  EXPECT_FALSE(OpRunner("Any").Input<bool>({}, {0}).Scalar<int32_t>(0).RunOne()->flat<bool>()[0]);
}

TEST(ReduceTest, L18NanWinsAtAnyPosition) {
  for (const char* op : {"Max", "Min"}) {
    for (int at : {0, 17, 299}) {
      std::vector<float> values(300, 1.0f);
      values[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(OpRunner(op).Input<float>(values, {300}).Scalar<int32_t>(0).RunOne()->flat<float>()[0])) << at;
      EXPECT_TRUE(std::isnan(OpRunner(op).Input<float>(values, {300, 1, 1}).Scalar<int64_t>(0).RunOne()->flat<float>()[0]));
    }
  }
}

TEST(ReduceTest, RefusesBadAxes) {
  const auto code = [](std::vector<int32_t> axes) {
    const int64_t n = static_cast<int64_t>(axes.size());
    return OpRunner("Max").Input<float>({1, 2, 3, 4}, {2, 2}).Input<int32_t>(std::move(axes), {n}).RunOne().status().code();
  };
  EXPECT_EQ(code({2}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({-3}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({1, -1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({0, 1}), absl::StatusCode::kOk);
}

TEST(ReduceTest, KeepDims) {
  OpRunner op("Sum");
  op.Input(RandomFloats({2, 3, 4}, 1)).Input<int64_t>({0, -1}, {2}).With("keep_dims", true);
  EXPECT_EQ(op.RunOne()->shape(), Shape::Of({1, 3, 1}));
}

TEST(ArgMaxTest, L18FirstOfEqualsAndNoNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto argmax = [](std::vector<float> row) {
    const int64_t n = static_cast<int64_t>(row.size());
    OpRunner rows("ArgMax");
    rows.Input(*Tensor::Of<float>(row, Shape::Of({n}))).Scalar<int32_t>(0);
    OpRunner columns("ArgMax");
    std::vector<float> twice;
    for (float x : row) twice.insert(twice.end(), {x, x});
    columns.Input(*Tensor::Of<float>(twice, Shape::Of({n, 2}))).Scalar<int32_t>(0);
    const int64_t index = rows.RunOne()->flat<int64_t>()[0];
    EXPECT_EQ(columns.RunOne()->flat<int64_t>(), absl::Span<const int64_t>({index, index}));
    return index;
  };
  EXPECT_EQ(argmax({1, 3, 3, 2}), 1);
  EXPECT_EQ(argmax({nan, 1, nan, 5, nan}), 3);
  EXPECT_EQ(argmax({nan, nan}), 0);
  EXPECT_EQ(argmax({nan, -inf}), 0);
  std::vector<float> longer(1500, -1.0f);
  longer[1100] = longer[1300] = 2.0f;
  EXPECT_EQ(argmax(longer), 1100);
}

TEST(ArgMaxTest, RefusesEmptyAxesAndBadOnes) {
  EXPECT_EQ(OpRunner("ArgMin").Input<float>({}, {2, 0}).Scalar<int32_t>(1).RunOne().status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(OpRunner("ArgMin").Input<float>({}, {2, 0}).Scalar<int32_t>(0).RunOne().ok());
  EXPECT_EQ(OpRunner("ArgMin").Scalar<float>(1).Scalar<int32_t>(0).RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CumsumTest, ExclusiveAndReverse) {
  const auto scan = [](bool exclusive, bool reverse) {
    OpRunner op("Cumsum");
    op.Input<int8_t>({100, 20, 10, 1}, {4}).Scalar<int32_t>(-1).With("exclusive", exclusive).With("reverse", reverse);
    const Tensor out = *op.RunOne();
    return std::vector<int8_t>(out.flat<int8_t>().begin(), out.flat<int8_t>().end());
  };
  EXPECT_EQ(scan(false, false), (std::vector<int8_t>{100, 120, -126, -125}));
  EXPECT_EQ(scan(true, false), (std::vector<int8_t>{0, 100, 120, -126}));
  EXPECT_EQ(scan(false, true), (std::vector<int8_t>{-125, 31, 11, 1}));
  EXPECT_EQ(scan(true, true), (std::vector<int8_t>{31, 11, 1, 0}));
}

// Sums of 1, 1/2, 1/3 ... as TensorFlow adds them up.
void ExpectSumBits(std::initializer_list<int64_t> dims, int32_t axis, const std::vector<uint32_t>& bits) {
  std::vector<float> x(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
  for (size_t k = 0; k < x.size(); ++k) x[k] = 1.0f / static_cast<float>(k + 1);
  absl::StatusOr<Tensor> sum = OpRunner("Sum").Input<float>(x, dims).Input<int32_t>({axis}, {1}).RunOne();
  ASSERT_TRUE(sum.ok()) << sum.status();
  ASSERT_EQ(sum->num_elements(), static_cast<int64_t>(bits.size()));
  for (size_t k = 0; k < bits.size(); ++k) EXPECT_EQ(std::bit_cast<uint32_t>(sum->flat<float>()[k]), bits[k]) << k;
}

TEST(ReduceTest, L26FloatSumsHaveTensorFlowsBits) {
  ExpectSumBits({45}, 0, {0x408ca36b});
  ExpectSumBits({5, 9}, 1, {0x40350dd2, 0x3f2a8825, 0x3ecaee37, 0x3e90f2ce, 0x3e61ada2});
  ExpectSumBits({20, 9}, 0, {0x3fb0214d, 0x3f5c3f72, 0x3f2e10dd, 0x3f159cd6, 0x3f060390, 0x3ef5e50b, 0x3ee5155e, 0x3ed7b2df,
                             0x3eccabe2});
}

}  // namespace
}  // namespace thalweg
