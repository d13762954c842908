// _FusedElementwise beside the ops that it stands for: the results must be the same to the bit.
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "thalweg/graph/passes/fuse_elementwise.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;
using testing::SameTensor;

template <typename T>
Tensor Values(const Shape& shape, int seed) {
  std::mt19937 random(seed);
  std::vector<T> values(shape.num_elements());
  const T special[] = {T(0), T(-0.0), std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(), T(1), T(-100), T(90)};
  for (T& value : values) {
    value = random() % 8 == 0 ? special[random() % std::size(special)] : T(static_cast<double>(random() % 4001) / 500 - 4);
  }
  return *Tensor::Of<T>(std::move(values), shape);
}

int NumInputs(absl::string_view op) {
  for (absl::string_view binary : {"Add", "AddV2", "Div", "Maximum", "Mul", "Minimum", "RealDiv", "SquaredDifference", "Sub"}) {
    if (op == binary) return 2;
  }
  return 1;
}

OpRunner Fused(std::vector<Tensor> inputs, std::vector<std::string> ops, std::vector<int64_t> operands) {
  OpRunner runner("_FusedElementwise");
  for (Tensor& input : inputs) runner.Input(std::move(input));
  const std::vector<float> alphas(ops.size(), 0.2f);  // the default of LeakyRelu
  runner.With("alphas", MakeListAttr(alphas));
  runner.With("ops", MakeListAttr(std::move(ops))).With("operands", MakeListAttr(std::move(operands)));
  return runner;
}

Tensor One(const std::string& op, std::vector<Tensor> inputs) {
  OpRunner runner(op);
  for (Tensor& input : inputs) runner.Input(std::move(input));
  absl::StatusOr<Tensor> out = runner.RunOne();
  EXPECT_TRUE(out.ok()) << op << ": " << out.status();
  return out.ok() ? *std::move(out) : Tensor();
}

template <typename T>
class FusedElementwise : public ::testing::Test {};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FusedElementwise, Types);

TYPED_TEST(FusedElementwise, EveryOpAloneAndBehindAnother) {
  for (absl::string_view op : FusibleElementwiseOps()) {
    const std::string name(op);
    for (int64_t n : {0, 1, 7, 8, 13, 512, 2003}) {
      const Tensor a = Values<TypeParam>(Shape::Of({n}), 1), b = Values<TypeParam>(Shape::Of({n}), 2);
      const bool binary = NumInputs(op) == 2;
      const Tensor expected = One(name, binary ? std::vector<Tensor>{a, b} : std::vector<Tensor>{a});
      const absl::StatusOr<Tensor> alone = Fused({a, b}, {name}, binary ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}).RunOne();
      ASSERT_TRUE(alone.ok()) << name << ": " << alone.status();
      EXPECT_TRUE(SameTensor(*alone, expected)) << name << " of " << n;
      const absl::StatusOr<Tensor> two =
          Fused({a, b}, {name, "Neg"}, binary ? std::vector<int64_t>{0, 1, -1} : std::vector<int64_t>{0, -1}).RunOne();
      ASSERT_TRUE(two.ok()) << two.status();
      EXPECT_TRUE(SameTensor(*two, One("Neg", {expected}))) << name << ", Neg of " << n;
    }
  }
}

TYPED_TEST(FusedElementwise, OperandsThatAreSpread) {
  for (int64_t rows : {1, 3, 20}) {
    for (int64_t columns : {5, 64, 100, 700}) {
      const Tensor x = Values<TypeParam>(Shape::Of({rows, 2, columns}), 1), row = Values<TypeParam>(Shape::Of({columns}), 2),
                   column = Values<TypeParam>(Shape::Of({rows, 1, 1}), 3), middle = Values<TypeParam>(Shape::Of({2, 1}), 4),
                   one = Values<TypeParam>(Shape(), 5);
      const absl::StatusOr<Tensor> fused = Fused({x, row, column, middle, one}, {"Mul", "Add", "Sub", "Tanh", "Maximum"},
                                                 {0, 1, -1, 2, 3, -2, -3, -4, 4}).RunOne();
      ASSERT_TRUE(fused.ok()) << fused.status();
      const Tensor sum = One("Add", {One("Mul", {x, row}), column});
      const Tensor expected = One("Maximum", {One("Tanh", {One("Sub", {middle, sum})}), one});
      EXPECT_TRUE(SameTensor(*fused, expected)) << rows << " " << columns;
    }
  }
}

TYPED_TEST(FusedElementwise, ManyResultsAtATime) {
  // Eight results of eight inputs are alive before the first two are added.
  std::vector<Tensor> inputs;
  std::vector<std::string> ops;
  std::vector<int64_t> operands;
  Tensor expected;
  for (int i = 0; i < 8; ++i) {
    inputs.push_back(Values<TypeParam>(Shape::Of({601}), i));
    ops.push_back("Exp");
    operands.push_back(i);
    const Tensor power = One("Exp", {inputs.back()});
    expected = i == 0 ? power : One("Add", {expected, power});
  }
  for (int i = 1; i < 8; ++i) {
    ops.push_back("Add");
    operands.push_back(i == 1 ? -1 : -1 - (8 + i - 2));
    operands.push_back(-1 - i);
  }
  const absl::StatusOr<Tensor> fused = Fused(inputs, ops, operands).RunOne();
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_TRUE(SameTensor(*fused, expected));
}

TEST(FusedElementwise, AttributesOfSteps) {
  const Tensor x = Values<float>(Shape::Of({100}), 1);
  OpRunner leaky("LeakyRelu");
  leaky.Input(x).With("alpha", 0.3);
  OpRunner fused = Fused({x}, {"LeakyRelu", "Neg"}, {0, -1});
  fused.With("alphas", MakeListAttr(std::vector<float>{0.3f, 0}));
  EXPECT_TRUE(SameTensor(*fused.RunOne(), One("Neg", {*leaky.RunOne()})));
}

TEST(FusedElementwise, RefusesWhatIsNoProgram) {
  const Tensor x = Values<float>(Shape::Of({4}), 1);
  const auto refused = [&](std::vector<std::string> ops, std::vector<int64_t> operands) {
    return std::string(Fused({x}, std::move(ops), std::move(operands)).RunOne().status().message());
  };
  EXPECT_NE(refused({}, {}), "");
  EXPECT_NE(refused(std::vector<std::string>(17, "Neg"), std::vector<int64_t>(17, 0)), "");
  EXPECT_NE(refused({"Neg"}, {}), "") << "no operand";
  EXPECT_NE(refused({"Neg"}, {1}), "") << "no such input";
  EXPECT_NE(refused({"Neg"}, {-1}), "") << "its own result";
  EXPECT_NE(refused({"Neg"}, {INT64_MIN}), "");
  EXPECT_NE(refused({"NoSuchOp"}, {0}), "");
  EXPECT_NE(refused({"Sum"}, {0}), "") << "no elementwise op";
  EXPECT_NE(refused({"IsNan"}, {0}), "") << "another type";
}

}  // namespace
}  // namespace thalweg
