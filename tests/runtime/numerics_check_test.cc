// The check for NaN and infinities sees every kind in every floating type, and says which, how many and where. Which node it
// names is tested on the program, for every executor (tests/tools/cli_test.py).
#include "thalweg/runtime/numerics_check.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace thalweg {
namespace {

template <typename Word>
Tensor OfBits(DType dtype, Shape shape, const std::vector<Word>& words) {
  Tensor tensor = *Tensor::Allocate(dtype, std::move(shape));
  std::memcpy(tensor.mutable_raw(), words.data(), words.size() * sizeof(Word));
  return tensor;
}

std::string Said(const Tensor& tensor, NumericsCheck check = NumericsCheck::kNaNAndInf) {
  return std::string(CheckNumerics("t", tensor, check).message());
}

template <typename Word>
struct Bits {
  DType dtype;
  Word largest, least, infinity, nan;
};

template <typename Word>
void ExpectKinds(const Bits<Word>& bits) {
  const Word sign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  const auto negative = [&](Word word) { return static_cast<Word>(word | sign); };
  const auto of = [&](const std::vector<Word>& words) {
    return OfBits<Word>(bits.dtype, Shape::Of({static_cast<int64_t>(words.size())}), words);
  };
  const std::string type = DTypeName(bits.dtype);
  EXPECT_EQ(Said(of({0, sign, bits.largest, negative(bits.largest), bits.least, negative(bits.least)})), "") << type;
  EXPECT_EQ(Said(of({0, bits.nan, negative(bits.nan)})), "t has 2 NaN in " + type + "[3]; the first, NaN, is element [1]");
  if (bits.infinity == bits.nan) return;
  const Tensor mixed = of({bits.largest, negative(bits.infinity), bits.infinity, bits.nan, bits.infinity});
  EXPECT_EQ(Said(mixed), "t has 1 NaN, 2 Inf, 1 -Inf in " + type + "[5]; the first, -Inf, is element [1]");
  EXPECT_EQ(Said(mixed, NumericsCheck::kNaN), "t has 1 NaN, 2 Inf, 1 -Inf in " + type + "[5]; the first, NaN, is element [3]");
  EXPECT_EQ(Said(of({bits.infinity}), NumericsCheck::kNaN), "") << type;
}

TEST(NumericsCheck, EveryFloatingType) {
  ExpectKinds<uint16_t>({DType::kFloat16, 0x7bff, 0x0001, 0x7c00, 0x7e00});
  ExpectKinds<uint16_t>({DType::kBFloat16, 0x7f7f, 0x0001, 0x7f80, 0x7f81});
  ExpectKinds<uint32_t>({DType::kFloat32, 0x7f7fffff, 1, 0x7f800000, 0x7f800001});
  ExpectKinds<uint64_t>({DType::kFloat64, 0x7fefffffffffffff, 1, 0x7ff0000000000000, 0x7ff8000000000000});
  ExpectKinds<uint8_t>({DType::kFloat8E5M2, 0x7b, 1, 0x7c, 0x7d});
  ExpectKinds<uint8_t>({DType::kFloat8E4M3FN, 0x7e, 1, 0x7f, 0x7f});  // it has no infinity
}

TEST(NumericsCheck, ComplexNumbersCountOnce) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const Tensor t = *Tensor::Of<std::complex<float>>({{1, 2}, {-kInf, 3}, {kInf, kNaN}, {0, kInf}}, Shape::Of({2, 2}));
  EXPECT_EQ(Said(t), "t has 1 NaN, 1 Inf, 1 -Inf in complex64[2,2]; the first, -Inf, is element [0,1]");
  EXPECT_EQ(Said(t, NumericsCheck::kNaN), "t has 1 NaN, 1 Inf, 1 -Inf in complex64[2,2]; the first, NaN, is element [1,0]");
}

TEST(NumericsCheck, WhatHasNoSuchValuesPasses) {
  EXPECT_EQ(Said(*Tensor::Of<int32_t>({-1, 0x7fc00000}, Shape::Of({2}))), "");
  EXPECT_EQ(Said(*Tensor::Of<std::string>({"nan"}, Shape::Of({1}))), "");
  EXPECT_EQ(Said(*Tensor::Allocate(DType::kFloat32, Shape::Of({3, 0}))), "");
  EXPECT_EQ(Said(Tensor()), "");
}

TEST(NumericsCheck, OneElementNeedsNoIndex) {
  const Tensor nan = *Tensor::Scalar<double>(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Said(nan), "t has 1 NaN in float64[]");
  EXPECT_EQ(Said(nan, NumericsCheck::kOff), "");
}

}  // namespace
}  // namespace thalweg
