#include "thalweg/proto/numeric_types.h"

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "thalweg/ops/float_environment.h"
#include "thalweg/tests/support/tests_dir.h"

namespace thalweg {
namespace {

using numeric_internal::BitsToFloat;
using numeric_internal::FloatToBits;

std::ifstream OpenGolden(const std::string& name) {
  std::ifstream file(testing::TestsDir() + "/golden/numeric/" + name);
  EXPECT_TRUE(file.is_open()) << name;
  return file;
}

// The value of a code by the definition of the format, in double arithmetic.
double ValueOf(uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const double sign = code >> (exponent_bits + mantissa_bits) ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// Every code means what the format defines, and converting it to float and back gives it again.
template <typename T>
void CheckAllCodes(int exponent_bits, int mantissa_bits) {
  for (uint32_t code = 0; code <= 0xffff; ++code) {
    const T x = T::FromBits(static_cast<uint16_t>(code));
    const float value = static_cast<float>(x);
    const double expected = ValueOf(code, exponent_bits, mantissa_bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << std::hex << code;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(value)))) << std::hex << code;
    } else {
      ASSERT_EQ(value, expected) << std::hex << code;
      ASSERT_EQ(std::signbit(value), std::signbit(expected)) << std::hex << code;
      ASSERT_EQ(T(value).bits, code) << std::hex << code;
    }
  }
}

TEST(NumericTypes, AllHalfCodes) { CheckAllCodes<half>(5, 10); }
TEST(NumericTypes, L15HalfKeepsItsDenormalsWhenFloatsAreFlushed) {
  const ScopedFlushDenormals flush;
  CheckAllCodes<half>(5, 10);
}
TEST(NumericTypes, AllBFloat16Codes) { CheckAllCodes<bfloat16>(8, 7); }

template <typename T>
void CheckDecoding(std::istringstream& line) {
  for (int code = 0; code < 256; ++code) {
    uint32_t expected;
    ASSERT_TRUE(line >> std::hex >> expected) << code;
    const float value = static_cast<float>(T::FromBits(static_cast<uint8_t>(code)));
    if (std::isnan(BitsToFloat(expected))) {
      ASSERT_TRUE(std::isnan(value)) << code;
    } else {
      ASSERT_EQ(FloatToBits(value), expected) << code;
      ASSERT_EQ(T(value).bits, code);
    }
  }
}

TEST(NumericTypes, AllFloat8CodesDecodeAsMlDtypesSays) {
  std::ifstream file = OpenGolden("decode.txt");
  std::string line;
  int types = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string type;
    words >> type;
    if (type == "float8_e5m2")
      CheckDecoding<float8_e5m2>(words);
    else if (type == "float8_e4m3fn")
      CheckDecoding<float8_e4m3fn>(words);
    else
      FAIL() << "no type " << type;
    ++types;
  }
  EXPECT_EQ(types, 2);
}

template <typename T>
void CheckRounding(float f, const std::string& expected) {
  const T rounded(f);
  if (expected == "nan") {
    EXPECT_TRUE(std::isnan(static_cast<float>(rounded))) << std::hex << FloatToBits(f);
  } else {
    EXPECT_EQ(rounded.bits, std::stoul(expected, nullptr, 16)) << std::hex << FloatToBits(f);
  }
}

TEST(NumericTypes, RoundingToNearestEvenAsNumpySays) {
  std::ifstream file = OpenGolden("round.txt");
  uint32_t bits;
  std::string as_half, as_bfloat16, as_e5m2, as_e4m3fn;
  int cases = 0;
  while (file >> std::hex >> bits >> as_half >> as_bfloat16 >> as_e5m2 >> as_e4m3fn) {
    const float f = BitsToFloat(bits);
    CheckRounding<half>(f, as_half);
    CheckRounding<bfloat16>(f, as_bfloat16);
    CheckRounding<float8_e5m2>(f, as_e5m2);
    CheckRounding<float8_e4m3fn>(f, as_e4m3fn);
    if (HasFailure()) return;
    ++cases;
  }
  EXPECT_GT(cases, 5000);
}

TEST(NumericTypes, ArithmeticRoundsOncePerOperation) {
  const half one(1.0f);
  const half tiny = half::FromBits(0x1000);  // 2^-11: half a unit in the last place of one
  EXPECT_EQ((one + tiny).bits, one.bits);
  EXPECT_EQ((one + tiny + tiny).bits, one.bits);
  EXPECT_EQ((one + (tiny + tiny)).bits, 0x3c01);
  EXPECT_TRUE(half(65504.0f) + half(65504.0f) > half(65504.0f));
  EXPECT_FALSE(half(NAN) == half(NAN));
  EXPECT_TRUE(bfloat16(-0.0f) == bfloat16(0.0f));
}

TEST(NumericTypes, FourBitIntegersWrap) {
  for (int v = -40; v <= 40; ++v) {
    const int wrapped = ((v % 16) + 16) % 16;
    EXPECT_EQ(static_cast<int>(uint4(v)), wrapped);
    EXPECT_EQ(static_cast<int>(int4(v)), wrapped < 8 ? wrapped : wrapped - 16);
  }
}

}  // namespace
}  // namespace thalweg
