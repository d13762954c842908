#include "thalweg/ops/common/vector_math.h"

namespace thalweg::vector_math {
namespace {

// The bits of 2/pi after the binary point, two zero bits in front, as bytes; what lies past them is taken for zero.
constexpr uint8_t kTwoOverPi[] = {0x28, 0xbe, 0x60, 0xdb, 0x93, 0x91, 0x05, 0x4a, 0x7f, 0x09, 0xd5, 0xf4,
                                  0x7d, 0x4d, 0x37, 0x70, 0x36, 0xd8, 0xa5, 0x66, 0x4f, 0x10, 0xe4, 0x10};
constexpr int kTwoOverPiBytes = sizeof(kTwoOverPi);

// Four bytes of it from byte `at` on, which may lie before the first or past the last.
uint64_t TwoOverPiWord(int at) {
  uint64_t word = 0;
  for (int k = at; k < at + 4; ++k) word = word << 8 | (k >= 0 && k < kTwoOverPiBytes ? kTwoOverPi[k] : 0);
  return word;
}

}  // namespace

// Multiplies by those bits of 2/pi that count for the remainder modulo four quarters, in fixed point with 62 bits of
// fraction (the reduction of Payne and Hanek).
Turn SplitGreatTurn(float x) {
  constexpr double kQuarterUnit = 3.4061215800865545e-19;  // pi/2 * 2^-62
  const uint32_t bits = std::bit_cast<uint32_t>(std::fabs(x));
  const int place = static_cast<int>(bits >> 23) - 118;  // so many bits of 2/pi only make whole turns
  const uint64_t mantissa = static_cast<uint64_t>((bits & 0x007fffff) | 0x00800000) << (place & 7);
  const int first = place / 8 - 4;
  uint64_t product = (mantissa * TwoOverPiWord(first + 8)) >> 32;
  product += mantissa * TwoOverPiWord(first + 4);
  product += mantissa * TwoOverPiWord(first) << 32;
  const uint64_t quarters = (product + (uint64_t{1} << 61)) >> 62;
  const int64_t rest = static_cast<int64_t>(product - (quarters << 62));
  return {static_cast<uint32_t>(quarters), static_cast<float>(static_cast<double>(rest) * kQuarterUnit)};
}

}  // namespace thalweg::vector_math
