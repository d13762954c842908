#include "thalweg/ops/strings/string_hash.h"

#include <bit>
#include <cstring>
#include <utility>

namespace thalweg::strings {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as little-endian numbers");

uint64_t Word(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
uint64_t HalfWord(const char* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
// Up to seven bytes, the first in the lowest place.
uint64_t Tail(const char* p, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; ++i) v |= uint64_t{static_cast<uint8_t>(p[i])} << (8 * i);
  return v;
}

// ---- FarmHash

constexpr uint64_t kPrime0 = 0xc3a5c85c97cb3127, kPrime1 = 0xb492b66fbe98f273, kPrime2 = 0x9ae16a3b2f90404f;

uint64_t FoldHigh(uint64_t v) { return v ^ (v >> 47); }

uint64_t MixPair(uint64_t u, uint64_t v, uint64_t multiplier) {
  const uint64_t first = FoldHigh((u ^ v) * multiplier);
  return FoldHigh((v ^ first) * multiplier) * multiplier;
}

uint64_t FarmUpTo16(const char* s, size_t n) {
  const uint64_t multiplier = kPrime2 + n * 2;
  if (n >= 8) {
    const uint64_t a = Word(s) + kPrime2, b = Word(s + n - 8);
    return MixPair(std::rotr(b, 37) * multiplier + a, (std::rotr(a, 25) + b) * multiplier, multiplier);
  }
  if (n >= 4) return MixPair(n + (HalfWord(s) << 3), HalfWord(s + n - 4), multiplier);
  if (n == 0) return kPrime2;
  const auto byte = [s](size_t i) { return uint64_t{static_cast<uint8_t>(s[i])}; };
  const uint64_t y = byte(0) + (byte(n >> 1) << 8), z = n + (byte(n - 1) << 2);
  return FoldHigh(y * kPrime2 ^ z * kPrime0) * kPrime2;
}

uint64_t FarmUpTo32(const char* s, size_t n) {
  const uint64_t multiplier = kPrime2 + n * 2;
  const uint64_t a = Word(s) * kPrime1, b = Word(s + 8), c = Word(s + n - 8) * multiplier, d = Word(s + n - 16) * kPrime2;
  return MixPair(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + kPrime2, 18) + c, multiplier);
}

uint64_t FarmUpTo64(const char* s, size_t n) {
  const uint64_t multiplier = kPrime2 + n * 2;
  const uint64_t a = Word(s) * kPrime2, b = Word(s + 8), c = Word(s + n - 8) * multiplier, d = Word(s + n - 16) * kPrime2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = MixPair(y, a + std::rotr(b + kPrime2, 18) + c, multiplier);
  const uint64_t e = Word(s + 16) * multiplier, f = Word(s + 24);
  const uint64_t g = (y + Word(s + n - 32)) * multiplier, h = (z + Word(s + n - 24)) * multiplier;
  return MixPair(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, multiplier);
}

using Pair = std::pair<uint64_t, uint64_t>;

// 32 bytes into a pair of running values.
Pair Absorb(const char* s, uint64_t a, uint64_t b) {
  a += Word(s);
  b = std::rotr(b + a + Word(s + 24), 21);
  const uint64_t before = a;
  a += Word(s + 8) + Word(s + 16);
  b += std::rotr(a, 44);
  return {a + Word(s + 24), b + before};
}

struct FarmState {
  uint64_t x, y, z;
  Pair v, w;

  // 64 bytes. The last ones are mixed with other factors than those before.
  void Block(const char* s, uint64_t multiplier, uint64_t factor) {
    x = std::rotr(x + y + v.first + Word(s + 8), 37) * multiplier;
    y = std::rotr(y + v.second + Word(s + 48), 42) * multiplier;
    x ^= w.second * factor;
    y += v.first * factor + Word(s + 40);
    z = std::rotr(z + w.first, 33) * multiplier;
    v = Absorb(s, v.second * multiplier, x + w.first);
    w = Absorb(s + 32, z + w.second, y + Word(s + 16));
    std::swap(z, x);
  }
};

uint64_t FarmLong(const char* s, size_t n) {
  constexpr uint64_t kSeed = 81;
  FarmState state{kSeed * kPrime2 + Word(s), kSeed * kPrime1 + 113, 0, {0, 0}, {0, 0}};
  state.z = FoldHigh(state.y * kPrime2 + 113) * kPrime2;
  const size_t rest = (n - 1) & 63;
  const char* const end = s + (n - 1) / 64 * 64;
  for (; s != end; s += 64) state.Block(s, kPrime1, 1);
  const uint64_t multiplier = kPrime1 + ((state.z & 0xff) << 1);
  state.w.first += rest;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.Block(end + rest - 63, multiplier, 9);
  return MixPair(MixPair(state.v.first, state.w.first, multiplier) + FoldHigh(state.y) * kPrime0 + state.z,
                 MixPair(state.v.second, state.w.second, multiplier) + state.x, multiplier);
}

// ---- SipHash

struct SipState {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

}  // namespace

uint64_t Fingerprint64(absl::string_view bytes) {
  const size_t n = bytes.size();
  if (n <= 16) return FarmUpTo16(bytes.data(), n);
  if (n <= 32) return FarmUpTo32(bytes.data(), n);
  if (n <= 64) return FarmUpTo64(bytes.data(), n);
  return FarmLong(bytes.data(), n);
}

uint64_t MurmurHash64(absl::string_view bytes, uint64_t seed) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto fold = [](uint64_t v) { return v ^ (v >> 47); };
  uint64_t hash = seed ^ (bytes.size() * kMultiplier);
  while (bytes.size() >= 8) {
    hash = (hash ^ fold(Word(bytes.data()) * kMultiplier) * kMultiplier) * kMultiplier;
    bytes.remove_prefix(8);
  }
  if (!bytes.empty()) hash = (hash ^ Tail(bytes.data(), bytes.size())) * kMultiplier;
  return fold(fold(hash) * kMultiplier);
}

uint64_t SipHash(absl::string_view bytes, uint64_t key0, uint64_t key1) {
  SipState state{0x736f6d6570736575 ^ key0, 0x646f72616e646f6d ^ key1, 0x6c7967656e657261 ^ key0, 0x7465646279746573 ^ key1};
  const uint64_t length = uint64_t{bytes.size()} << 56;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) state.Absorb(Word(bytes.data()));
  state.Absorb(length | Tail(bytes.data(), bytes.size()));
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace thalweg::strings
