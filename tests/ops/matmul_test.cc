#include <complex>

#include "gtest/gtest.h"
#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg::testing {
namespace {

template <typename T>
class MatMuls : public ::testing::Test {};
using MatMulTypes =
    ::testing::Types<half, bfloat16, float, double, int32_t, int64_t, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(MatMuls, MatMulTypes);

template <typename T>
std::vector<T> List(std::initializer_list<float> values) {
  std::vector<T> out;
  for (float v : values) out.push_back(T(v));
  return out;
}

TYPED_TEST(MatMuls, EveryTypeAndTransposition) {
  const std::vector<TypeParam> a = List<TypeParam>({1, 2, 3, 4, 5, 6}), a_t = List<TypeParam>({1, 4, 2, 5, 3, 6});
  const std::vector<TypeParam> b = List<TypeParam>({1, 0, 2, 1, 0, 3}), b_t = List<TypeParam>({1, 2, 0, 0, 1, 3});
  for (int transposes = 0; transposes < 4; ++transposes) {
    OpRunner op("MatMul");
    op.With("transpose_a", (transposes & 1) != 0).With("transpose_b", (transposes & 2) != 0);
    op.Input(transposes & 1 ? MakeTensor(a_t, {3, 2}) : MakeTensor(a, {2, 3}));
    op.Input(transposes & 2 ? MakeTensor(b_t, {2, 3}) : MakeTensor(b, {3, 2}));
    const absl::StatusOr<Tensor> out = op.RunOne();
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectShape(*out, {2, 2});
    EXPECT_EQ(Values<TypeParam>(*out), List<TypeParam>({5, 11, 14, 23}));
  }
}

TEST(MatMul, TransposingIsNotConjugating) {
  using C = std::complex<float>;
  OpRunner matmul("MatMul"), batch("BatchMatMulV2");
  matmul.With("transpose_a", true).Input<C>({C(1, 2), C(2, 0)}, {2, 1}).Input<C>({C(0, 4), C(3, 0)}, {2, 1});
  EXPECT_EQ(matmul.RunOne()->flat<C>()[0], C(-2, 4));
  batch.With("adj_x", true).Input<C>({C(1, 2), C(2, 0)}, {2, 1}).Input<C>({C(0, 4), C(3, 0)}, {2, 1});
  EXPECT_EQ(batch.RunOne()->flat<C>()[0], C(14, 4));
}

// Matrices around the sizes that are packed (packed_matrix.h), the last panel of columns narrow; OpRunner runs each twice, read
// forwards and backwards, whole and in pieces, and compares the bits.
TEST(MatMul, ASingleRowTimesAConstantMatrix) {
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>(400, 500), {700, 385}, {512, 1024}, {1, 300'001}}) {
    std::vector<float> row(rows), matrix(rows * columns);
    for (int64_t i = 0; i < rows; ++i) row[i] = static_cast<float>(i % 7 - 3);
    for (int64_t i = 0; i < rows * columns; ++i) matrix[i] = static_cast<float>(i % 11 - 5);
    std::vector<float> expected(columns);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) expected[j] += row[i] * matrix[i * columns + j];  // small integers: exact
    }
    OpRunner op("MatMul");
    op.Input(MakeTensor(row, {1, rows})).ConstantInput(MakeTensor(matrix, {rows, columns}));
    const absl::StatusOr<Tensor> out = op.RunOne();
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(Values<float>(*out), expected) << rows << " times " << columns;
  }
}

// As a matrix in a file, which begins anywhere.
TEST(MatMul, ConstantOperandsThatAreNotAligned) {
  constexpr int64_t kRows = 50, kColumns = 33;
  std::vector<float> matrix((kRows + 1) * kColumns), left(3 * kRows), expected(3 * kColumns);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(static_cast<int>(i % 11) - 5);
  for (size_t i = 0; i < left.size(); ++i) left[i] = static_cast<float>(static_cast<int>(i % 7) - 3);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t k = 0; k < kRows; ++k) {
      for (int64_t j = 0; j < kColumns; ++j) expected[i * kColumns + j] += left[i * kRows + k] * matrix[(k + 1) * kColumns + j];
    }
  }
  const Tensor misaligned = MakeTensor(matrix, {kRows + 1, kColumns}).Rows(1, kRows + 1);
  ASSERT_NE(reinterpret_cast<uintptr_t>(misaligned.raw()) % 64, 0u);
  OpRunner op("MatMul");
  op.Input(MakeTensor(left, {3, kRows})).ConstantInput(misaligned);
  const absl::StatusOr<Tensor> out = op.RunOne();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values<float>(*out), expected);
}

TEST(MatMul, EmptyOperands) {
  OpRunner inner("MatMul"), rows("MatMul");
  EXPECT_EQ(Values<float>(*inner.Input(MakeTensor<float>({}, {2, 0})).Input(MakeTensor<float>({}, {0, 3})).RunOne()),
            std::vector<float>(6, 0.0f));
  ExpectShape(*rows.Input(MakeTensor<float>({}, {0, 3})).Input(MakeTensor<float>({1, 2, 3}, {3, 1})).RunOne(), {0, 1});
}

// Large enough to be cut for four threads; OpRunner compares with one thread bit by bit.
TEST(MatMul, SplitOverThreadsChangesNoBit) {
  const int64_t kSizes[][3] = {{200, 150, 300}, {1, 4000, 900}, {4000, 1, 900}, {3, 2000, 1000}};
  for (const auto& [m, n, k] : kSizes) {
    OpRunner op("MatMul");
    op.Input(MakeTensor(Inexact(m * k, 1), {m, k})).Input(MakeTensor(Inexact(k * n, 2), {k, n}));
    const absl::StatusOr<Tensor> out = op.RunOne();
    EXPECT_TRUE(out.ok()) << out.status();
  }
}

// A single row has code of its own: more columns than one block of it, and depths that its unrolling does not divide.
TEST(MatMul, SingleRow) {
  for (int64_t k : {1, 2, 3, 4, 7, 64}) {
    for (int64_t n : {1, 10, 4096, 4099, 9001}) {
      const std::vector<float> a = Scrambled<float>(k, 1), b = Scrambled<float>(k * n, 2);
      std::vector<float> expected(n, 0.0f);
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j) expected[j] += a[p] * b[p * n + j];
      for (bool transposed : {false, true}) {
        OpRunner op("MatMul");
        op.With("transpose_a", transposed).Input(transposed ? MakeTensor(a, {k, 1}) : MakeTensor(a, {1, k}));
        const absl::StatusOr<Tensor> out = op.Input(MakeTensor(b, {k, n})).RunOne();
        ASSERT_TRUE(out.ok()) << out.status();
        ASSERT_EQ(Values<float>(*out), expected) << k << " x " << n;
      }
    }
  }
}

TEST(MatMul, MalformedInputs) {
  const auto code = [](std::initializer_list<int64_t> a, std::initializer_list<int64_t> b, bool transpose_a = false,
                       bool transpose_b = false) {
    OpRunner op("MatMul");
    op.With("transpose_a", transpose_a).With("transpose_b", transpose_b);
    op.Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(a))).Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(b)));
    return op.RunOne().status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code({2, 3}, {2, 3}), kInvalid);
  EXPECT_EQ(code({2, 3}, {4, 3}, true, true), kInvalid);
  EXPECT_EQ(code({3}, {3, 2}), kInvalid);
  EXPECT_EQ(code({2, 3}, {3}), kInvalid);
  EXPECT_EQ(code({1, 2, 3}, {1, 3, 2}), kInvalid);
  EXPECT_EQ(code({}, {2, 2}), kInvalid);
  EXPECT_EQ(code({2, 0}, {1, 2}), kInvalid);
  EXPECT_EQ(code({0, 3}, {4, 0}), kInvalid);
}

TEST(BatchMatMul, ProductsOfABatch) {
  for (const char* name : {"BatchMatMul", "BatchMatMulV2"}) {
    OpRunner op(name);
    op.Input<float>({1, 2, 3, 4}, {2, 1, 2}).Input<float>({1, 2, 3, 4}, {2, 2, 1});
    EXPECT_EQ(Values<float>(*op.RunOne()), (std::vector<float>{5, 25}));
  }
}

TEST(BatchMatMulV2, BroadcastsBatches) {
  OpRunner op("BatchMatMulV2");
  // Batches [2, 1] and [3]: products of scalars.
  op.Input<float>({2, 3}, {2, 1, 1, 1}).Input<float>({1, 10, 100}, {3, 1, 1});
  const Tensor out = *op.RunOne();
  ExpectShape(out, {2, 3, 1, 1});
  EXPECT_EQ(Values<float>(out), (std::vector<float>{2, 20, 200, 3, 30, 300}));
  OpRunner empty("BatchMatMulV2");
  ExpectShape(*empty.Input(MakeTensor<float>({}, {0, 2, 3})).Input(MakeTensor<float>({1, 2, 3}, {1, 3, 1})).RunOne(),
              {0, 2, 1});
}

TEST(BatchMatMul, MalformedInputs) {
  const auto code = [](const char* name, std::initializer_list<int64_t> x, std::initializer_list<int64_t> y) {
    OpRunner op(name);
    op.Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(x))).Input(*Tensor::Allocate(DType::kFloat32, Shape::Of(y)));
    return op.RunOne().status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  for (const char* name : {"BatchMatMul", "BatchMatMulV2"}) {
    EXPECT_EQ(code(name, {2, 2, 3}, {2, 4, 3}), kInvalid);
    EXPECT_EQ(code(name, {3}, {3, 2}), kInvalid);
    EXPECT_EQ(code(name, {2, 3}, {3}), kInvalid);
    EXPECT_EQ(code(name, {2, 2, 3}, {3, 3, 2}), kInvalid);
    EXPECT_EQ(code(name, {0, 2, 3}, {0, 2, 3}), kInvalid);
  }
  EXPECT_EQ(code("BatchMatMul", {2, 3}, {2, 3, 2}), kInvalid);
  EXPECT_EQ(code("BatchMatMul", {1, 2, 3}, {2, 3, 2}), kInvalid);
}

TEST(FusedMatMul, ActivationsByDefinition) {
  const struct {
    const char* name;
    float (*f)(float);
  } kActivations[] = {{"Relu", [](float x) { return x > 0 ? x : 0; }},
                      {"Relu6", [](float x) { return x > 6   ? 6
                                                     : x > 0 ? x
                                                             : 0; }},
                      {"Elu", [](float x) { return x > 0 ? x : std::expm1(x); }},
                      {"LeakyRelu", [](float x) { return x > 0 ? x : 0.3f * x; }},
                      {"Sigmoid", [](float x) { return 1 / (1 + std::exp(-x)); }},
                      {"Tanh", [](float x) { return std::tanh(x); }}};
  const std::vector<float> product = {-3, 0.5f, 20, 1, -0.25f, 4}, bias = {0.5f, -1, 0.125f};
  for (const auto& activation : kActivations) {
    OpRunner op("_FusedMatMul");
    op.With("fused_ops", MakeListAttr(std::vector<std::string>{"BiasAdd", activation.name}))
        .With("num_args", 1)
        .With("leakyrelu_alpha", 0.3);
    op.Input<float>({1, 0, 0, 1}, {2, 2}).Input(MakeTensor(product, {2, 3})).Input(MakeTensor(bias, {3}));
    std::vector<float> expected;
    for (int i = 0; i < 6; ++i) expected.push_back(activation.f(product[i] + bias[i % 3]));
    const absl::StatusOr<Tensor> out = op.RunOne();
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectNear(*out, expected);
  }
}

TEST(FusedMatMul, RefusesUnfitArguments) {
  OpRunner op("_FusedMatMul");
  op.With("fused_ops", MakeListAttr(std::vector<std::string>{"BiasAdd"})).With("num_args", 1);
  op.Input<float>({1, 2}, {1, 2}).Input<float>({1, 2}, {2, 1}).Input<float>({1, 2}, {2});
  EXPECT_EQ(op.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
  OpRunner missing("_FusedMatMul");
  missing.With("fused_ops", MakeListAttr(std::vector<std::string>{"BiasAdd"})).With("num_args", 0);
  missing.Input<float>({1, 2}, {1, 2}).Input<float>({1, 2}, {2, 1});
  EXPECT_EQ(missing.RunOne().status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thalweg::testing
