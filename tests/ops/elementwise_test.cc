// The elementwise driver: broadcasting, tiles, in-place reuse, types computed in other types, refusals.
#include <bit>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "thalweg/ops/common/elementwise.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;

template <typename T>
Tensor Counting(std::initializer_list<int64_t> dims, int64_t start = 0) {
  const Shape shape = Shape::Of(dims);
  std::vector<T> values;
  for (int64_t i = 0; i < shape.num_elements(); ++i) values.push_back(static_cast<T>(static_cast<float>((start + i) % 97)));
  return *Tensor::Of<T>(std::move(values), shape);
}

// The element of `t` that belongs to element `index` of a broadcast result of shape `out`.
float BroadcastElement(const Tensor& t, const Shape& out, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (int i = 1; i <= t.rank(); ++i) {
    const int64_t size = out.dim(out.rank() - i), d = t.dim(t.rank() - i);
    if (d != 1) offset += index % size * stride;
    stride *= d;
    index /= size;
  }
  return t.flat<float>()[offset];
}

void ExpectBroadcastSub(std::initializer_list<int64_t> a, std::initializer_list<int64_t> b) {
  const Tensor x = Counting<float>(a), y = Counting<float>(b, 13);
  absl::StatusOr<Tensor> z = OpRunner("Sub").Input(x).Input(y).RunOne();
  ASSERT_TRUE(z.ok()) << z.status();
  ASSERT_EQ(z->shape(), *BroadcastShapes(x.shape(), y.shape()));
  for (int64_t i = 0; i < z->num_elements(); ++i) {
    ASSERT_EQ(z->flat<float>()[i], BroadcastElement(x, z->shape(), i) - BroadcastElement(y, z->shape(), i))
        << x.shape().ToString() << " - " << y.shape().ToString() << " at " << i;
  }
}

TEST(ElementwiseTest, BroadcastsAnyRank) {
  ExpectBroadcastSub({}, {});
  ExpectBroadcastSub({5}, {});
  ExpectBroadcastSub({}, {5});
  ExpectBroadcastSub({2, 3}, {3});
  ExpectBroadcastSub({3}, {2, 3});
  ExpectBroadcastSub({2, 3}, {2, 1});
  ExpectBroadcastSub({2, 1}, {1, 3});
  ExpectBroadcastSub({4, 1, 3}, {5, 1});
  ExpectBroadcastSub({1, 1, 1}, {1});
  ExpectBroadcastSub({2, 1, 3, 1, 2, 1}, {1, 4, 1, 5, 1, 3});
  ExpectBroadcastSub({0, 3}, {1, 3});
  ExpectBroadcastSub({3, 1}, {3, 0});
  ExpectBroadcastSub({1}, {7, 1, 9});
}

TEST(ElementwiseTest, BroadcastsOverManyTilesAndLongRows) {
  ExpectBroadcastSub({1000, 3}, {3});        // short rows, repeating operand
  ExpectBroadcastSub({1000, 3}, {1000, 1});  // short rows, an operand per row
  ExpectBroadcastSub({700, 1}, {1, 7});      // both
  ExpectBroadcastSub({50, 70, 3}, {70, 1});
  ExpectBroadcastSub({40, 30, 5}, {40, 1, 5});
  ExpectBroadcastSub({3, 1000}, {1000});     // long rows
  ExpectBroadcastSub({1000, 100}, {1000, 1});
  ExpectBroadcastSub({600, 2}, {1, 2});
}

TEST(ElementwiseTest, RefusesShapesThatDoNotBroadcast) {
  EXPECT_EQ(OpRunner("Add").Input(Counting<float>({2, 3})).Input(Counting<float>({2})).RunOne().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(OpRunner("Add").Input(Counting<float>({0})).Input(Counting<float>({2})).RunOne().status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ElementwiseTest, HalfRoundsOncePerOp) {
  absl::StatusOr<Tensor> z = OpRunner("Add").Input(Counting<half>({300, 5})).Input(Counting<half>({5}, 3)).RunOne();
  ASSERT_TRUE(z.ok()) << z.status();
  for (int64_t i = 0; i < z->num_elements(); ++i) {
    EXPECT_EQ(static_cast<float>(z->flat<half>()[i]), static_cast<float>(i % 97 + i % 5 + 3));
  }
}

TEST(ElementwiseTest, L15HalfKeepsDenormals) {
  const half smallest = half::FromBits(1);
  absl::StatusOr<Tensor> z = OpRunner("Add").Input<half>({smallest, smallest}, {2}).Input<half>({smallest, half(0)}, {2}).RunOne();
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_EQ(z->flat<half>()[0].bits, 2);
  EXPECT_EQ(z->flat<half>()[1].bits, 1);
}

// Answers of TensorFlow where its formulas and the C library differ.
TEST(ElementwiseTest, L26FloatFunctionsHaveTensorFlowsBits) {
  const struct {
    const char* op;
    float x;
    uint32_t bits;
  } kCases[] = {{"Exp", 0.41809884f, 0x3fc270e9},     {"Log", 0.35460725f, 0xbf84b40a},  {"Log1p", 0.2868729f, 0x3e812259},
                {"Expm1", -0.63211316f, 0xbeefe37c},  {"Sin", -0.8375353f, 0xbf3e34f8},  {"Cos", -2.8323257f, 0xbf73dac6},
                {"Asin", -0.26209834f, 0xbe87c7c3},   {"Acos", 0.042083252f, 0x3fc3ac78}, {"Atanh", -0.13722132f, 0xbe0d681d},
                {"Sigmoid", 0.83549774f, 0x3f32906c}, {"Elu", -0.015125438f, 0xbc75f380}, {"Softplus", -1.180937f, 0x3e891395},
                {"Tanh", 0.3f, 0x3e9526ee},           {"Tanh", -1.7f, 0xbf6f76f8}};
  for (const auto& c : kCases) {
    const std::vector<float> x(kGroup + 1, c.x);
    absl::StatusOr<Tensor> y = OpRunner(c.op).Input<float>(x, {kGroup + 1}).RunOne();
    ASSERT_TRUE(y.ok()) << y.status();
    for (int64_t k = 0; k < kGroup; ++k) EXPECT_EQ(std::bit_cast<uint32_t>(y->flat<float>()[k]), c.bits) << c.op;
    EXPECT_NEAR(y->flat<float>()[kGroup], y->flat<float>()[0], 1e-6) << c.op;
  }
}

TEST(ElementwiseTest, L16IntegerDivisionByZeroIsRefused) {
  for (const char* op : {"FloorDiv", "FloorMod"}) {
    EXPECT_EQ(OpRunner(op).Input<int32_t>({1, 2}, {2}).Input<int32_t>({1, 0}, {2}).RunOne().status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(OpRunner(op).Input<int32_t>({}, {0}).Scalar<int32_t>(0).RunOne().ok()) << "an empty numerator is fine";
    const int32_t lowest = std::numeric_limits<int32_t>::min();
    absl::StatusOr<Tensor> wrapped = OpRunner(op).Scalar(lowest).Scalar<int32_t>(-1).RunOne();
    ASSERT_TRUE(wrapped.ok());
    EXPECT_EQ(wrapped->flat<int32_t>()[0], std::string(op) == "FloorDiv" ? lowest : 0);
  }
}

TEST(ElementwiseTest, L16IntegerPowerRefusesNegativeExponents) {
  EXPECT_EQ(OpRunner("Pow").Scalar<int64_t>(1).Scalar<int64_t>(-1).RunOne().status().code(), absl::StatusCode::kInvalidArgument);
  absl::StatusOr<Tensor> z = OpRunner("Pow").Input<int64_t>({2, 3, -1, 0}, {4}).Input<int64_t>({10, 4, 7, 0}, {4}).RunOne();
  ASSERT_TRUE(z.ok());
  EXPECT_EQ(z->flat<int64_t>(), absl::Span<const int64_t>({1024, 81, -1, 1}));
}

TEST(ElementwiseTest, L17FloorDivisionOfFloats) {
  const float inf = std::numeric_limits<float>::infinity();
  absl::StatusOr<Tensor> z = OpRunner("FloorDiv").Input<float>({1, inf, -7}, {3}).Input<float>({-inf, 1, 2}, {3}).RunOne();
  ASSERT_TRUE(z.ok());
  EXPECT_TRUE(z->flat<float>()[0] == 0 && std::signbit(z->flat<float>()[0]));
  EXPECT_EQ(z->flat<float>()[1], inf);
  EXPECT_EQ(z->flat<float>()[2], -4);
}

TEST(ElementwiseTest, L18NanWinsInMaximumAndMinimum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* op : {"Maximum", "Minimum"}) {
    absl::StatusOr<Tensor> z = OpRunner(op).Input<float>({nan, 1, nan}, {3}).Input<float>({1, nan, nan}, {3}).RunOne();
    ASSERT_TRUE(z.ok());
    for (float value : z->flat<float>()) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(ElementwiseTest, L19EqualityOfUnfitShapes) {
  for (const bool when_equal : {true, false}) {
    OpRunner op(when_equal ? "Equal" : "NotEqual");
    op.Input<int32_t>({1, 2}, {2}).Input<int32_t>({1, 2, 3}, {3});
    EXPECT_EQ(op.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
    op.With("incompatible_shape_error", false);
    absl::StatusOr<Tensor> z = op.RunOne();
    ASSERT_TRUE(z.ok()) << z.status();
    EXPECT_EQ(z->rank(), 0);
    EXPECT_EQ(z->flat<bool>()[0], !when_equal);
  }
}

TEST(ElementwiseTest, StringsConcatenateAndCompare) {
  absl::StatusOr<Tensor> sum = OpRunner("Add").Input<std::string>({"a", "b"}, {2, 1}).Input<std::string>({"x", "y"}, {2}).RunOne();
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->flat<std::string>(), absl::Span<const std::string>({"ax", "ay", "bx", "by"}));
  absl::StatusOr<Tensor> same = OpRunner("Equal").Input<std::string>({"a", "b"}, {2}).Scalar<std::string>("b").RunOne();
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->flat<bool>(), absl::Span<const bool>({false, true}));
}

TEST(BroadcastPlanTest, CollapsesNeighbours) {
  const Shape a = Shape::Of({2, 3, 4, 5}), b = Shape::Of({4, 5}), c = Shape::Of({1, 1, 1});
  const Shape* shapes[] = {&a, &b, &c};
  absl::StatusOr<BroadcastPlan> plan = BroadcastPlan::Make(shapes);
  ASSERT_TRUE(plan.ok());
  ASSERT_EQ(plan->rank(), 2);
  EXPECT_EQ(plan->dim(0), 6);
  EXPECT_EQ(plan->dim(1), 20);
  EXPECT_TRUE(plan->is_full(0));
  EXPECT_EQ(plan->period(1), 20);
  EXPECT_EQ(plan->period(2), 1);
}

TEST(SelectTest, LegacyConditionsOfRowsAndScalars) {
  OpRunner rows("Select");
  rows.Input<bool>({true, false}, {2}).Input<float>({1, 2, 3, 4}, {2, 2}).Input<float>({5, 6, 7, 8}, {2, 2});
  EXPECT_EQ(rows.RunOne()->flat<float>(), absl::Span<const float>({1, 2, 7, 8}));
  OpRunner whole("Select");
  whole.Scalar(false).Input<std::string>({"a"}, {1}).Input<std::string>({"b"}, {1});
  EXPECT_EQ(whole.RunOne()->flat<std::string>()[0], "b");
  OpRunner unfit("Select");
  unfit.Input<bool>({true, false, true}, {3}).Input<float>({1, 2}, {2}).Input<float>({5, 6}, {2});
  EXPECT_EQ(unfit.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SelectTest, V2Broadcasts) {
  OpRunner op("SelectV2");
  op.Input<bool>({true, false}, {2, 1}).Input<std::string>({"a", "b", "c"}, {3}).Scalar<std::string>("-");
  absl::StatusOr<Tensor> z = op.RunOne();
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_EQ(z->flat<std::string>(), absl::Span<const std::string>({"a", "b", "c", "-", "-", "-"}));
}

TEST(AddNTest, SumsManyAndChecksShapes) {
  OpRunner op("AddN");
  for (int i = 0; i < 5; ++i) op.Input(Counting<half>({2000}, i));
  absl::StatusOr<Tensor> z = op.RunOne();
  ASSERT_TRUE(z.ok()) << z.status();
  EXPECT_EQ(static_cast<float>(z->flat<half>()[7]), 7 + 8 + 9 + 10 + 11);
  op.ClearInputs().Input(Counting<half>({2})).Input(Counting<half>({1, 2}));
  EXPECT_EQ(op.With("N", 2).RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CheckNumericsTest, PassesFiniteAndNamesWhatIsNot) {
  EXPECT_TRUE(OpRunner("CheckNumerics").With("message", "m").Input<double>({1, -2}, {2}).RunOne().ok());
  const absl::Status bad = OpRunner("CheckNumerics").With("message", "loss").Input<half>({half(1), half(NAN)}, {2}).RunOne().status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(bad.message().find("loss"), absl::string_view::npos);
}

}  // namespace
}  // namespace thalweg
