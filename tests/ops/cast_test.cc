// Cast: values that change type, also where C++ leaves the conversion undefined.
#include <cmath>
#include <limits>

#include "gtest/gtest.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;

template <typename To, typename From>
std::vector<To> Cast(std::vector<From> values, bool truncate = false) {
  const int64_t n = static_cast<int64_t>(values.size());
  OpRunner op("Cast");
  op.Input(*Tensor::Of<From>(std::move(values), Shape::Of({n}))).With("DstT", DTypeOf<To>::value).With("Truncate", truncate);
  absl::StatusOr<Tensor> out = op.RunOne();
  EXPECT_TRUE(out.ok()) << out.status();
  if (!out.ok()) return {};
  const absl::Span<const To> flat = out->flat<To>();
  return std::vector<To>(flat.begin(), flat.end());
}

TEST(CastTest, FloatsThatDoNotFitIntegers) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {nan, inf, -inf, 300.7f, -300.7f, 3e9f};
  const int32_t low = std::numeric_limits<int32_t>::min();
  EXPECT_EQ((Cast<int32_t>(x)), (std::vector<int32_t>{low, low, low, 300, -300, low}));
  EXPECT_EQ((Cast<int8_t>(x)), (std::vector<int8_t>{-128, -128, -128, 127, -128, -128}));
  EXPECT_EQ((Cast<uint8_t>(x)), (std::vector<uint8_t>{0, 0, 0, 255, 0, 0}));
  EXPECT_EQ((Cast<uint32_t>(x)), (std::vector<uint32_t>{1u << 31, 1u << 31, 1u << 31, 300, 4294966996u, 3000000000u}));
  const uint64_t middle = uint64_t{1} << 63;
  EXPECT_EQ((Cast<uint64_t>(x)), (std::vector<uint64_t>{middle, middle, middle, 300, uint64_t(-300), 3000000000u}));
  EXPECT_EQ((Cast<int64_t>(std::vector<double>{1e19, -9.3e18, 2.9})),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::min(), 2}));
}

TEST(CastTest, BooleansAndComplex) {
  EXPECT_EQ((Cast<bool>(std::vector<float>{0, -0.0f, 0.5f, NAN})), (std::vector<bool>{false, false, true, true}));
  using C = std::complex<float>;
  EXPECT_EQ((Cast<bool>(std::vector<C>{{0, 1}, {1, 0}})), (std::vector<bool>{false, true})) << "the real part decides";
  EXPECT_EQ((Cast<int32_t>(std::vector<C>{{3.7f, 9}})), (std::vector<int32_t>{3}));
  EXPECT_EQ((Cast<std::complex<double>>(std::vector<int8_t>{-4})), (std::vector<std::complex<double>>{{-4, 0}}));
}

TEST(CastTest, L20TruncateCutsTheMantissa) {
  EXPECT_EQ((Cast<half>(std::vector<float>{65535}, true))[0].bits, 0x7bff);
  EXPECT_EQ((Cast<half>(std::vector<float>{65535}))[0].bits, 0x7c00);
  EXPECT_EQ((Cast<float>(std::vector<double>{1 + 3 * 0x1p-24}, true))[0], 1.0f + 0x1p-23f);
  EXPECT_EQ((Cast<float>(std::vector<double>{1 + 3 * 0x1p-24}))[0], 1.0f + 0x1p-22f);
  EXPECT_EQ((Cast<bfloat16>(std::vector<float>{-1.9999f}, true))[0].bits, 0xbfff);
  EXPECT_EQ((Cast<bfloat16>(std::vector<double>{-1.9999}, true))[0].bits, 0xc000) << "rounds: not from float";
}

TEST(CastTest, L20TruncateCutsTheRealPart) {
  const std::vector<std::complex<double>> x{{1 + 3 * 0x1p-24, 5}, {-1.9999, 1}};
  EXPECT_EQ(Cast<float>(x, true)[0], 1.0f + 0x1p-23f);
  EXPECT_EQ(Cast<half>(x, true)[1].bits, 0xbfff);
  EXPECT_EQ(Cast<half>(x)[1].bits, 0xc000);
}

TEST(CastTest, DoubleToFloat8RoundsOnce) {
  // A hair above the middle of two neighbours: rounding to float first would lose the hair.
  EXPECT_EQ(static_cast<float>(Cast<float8_e5m2>(std::vector<double>{1.125 + 0x1p-40})[0]), 1.25f);
  EXPECT_EQ(static_cast<float>(Cast<float8_e5m2>(std::vector<double>{1.125})[0]), 1.0f);
  EXPECT_EQ(static_cast<float>(Cast<float8_e4m3fn>(std::vector<float>{500})[0] == float8_e4m3fn(1)), 0);
}

TEST(CastTest, FourBitIntegersWrap) {
  const std::vector<int4> small = Cast<int4>(std::vector<int32_t>{7, 8, -9, 17});
  EXPECT_EQ((std::vector<int>{int(small[0]), int(small[1]), int(small[2]), int(small[3])}), (std::vector<int>{7, -8, 7, 1}));
  EXPECT_EQ((Cast<int64_t>(std::vector<uint4>{uint4(15), uint4(3)})), (std::vector<int64_t>{15, 3}));
}

TEST(CastTest, PairsWithoutConversionHaveNoKernel) {
  EXPECT_FALSE(OpRunner("Cast").Input<std::string>({"1"}, {1}).With("DstT", DType::kInt32).RunOne().ok());
  EXPECT_FALSE(OpRunner("Cast").Input<float>({1}, {1}).With("DstT", DType::kInt4).RunOne().ok());
}

}  // namespace
}  // namespace thalweg
