// Philox4x32-10, the counter-based generator of random ops (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// 2011): block number and key determine 128 bits, so any part of a stream can be had without what comes before it.
//
// A value; not thread-safe, copy it.
#pragma once

#include <array>
#include <cstdint>

namespace thalweg {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  static constexpr int kWords = 4;  // 32-bit words per block

  // As random ops with two 64-bit seeds start: the first is the key, the second the upper half of the counter.
  Philox(uint64_t seed, uint64_t seed2) : Philox(seed, 0, seed2) {}
  // Key, and the counter's halves.
  Philox(uint64_t key, uint64_t counter_low, uint64_t counter_high)
      : key_(key), counter_low_(counter_low), counter_high_(counter_high) {}

  uint64_t key() const { return key_; }
  uint64_t counter_low() const { return counter_low_; }
  uint64_t counter_high() const { return counter_high_; }

  // Leaves out `blocks` blocks.
  void Skip(uint64_t blocks) {
    counter_low_ += blocks;
    if (counter_low_ < blocks) ++counter_high_;
  }

  // The next block.
  Block operator()() {
    Block x = {Low(counter_low_), High(counter_low_), Low(counter_high_), High(counter_high_)};
    uint32_t k0 = Low(key_), k1 = High(key_);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * x[0], p1 = uint64_t{0xCD9E8D57} * x[2];
      x = {High(p1) ^ x[1] ^ k0, Low(p1), High(p0) ^ x[3] ^ k1, Low(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    Skip(1);
    return x;
  }

 private:
  static uint32_t Low(uint64_t v) { return static_cast<uint32_t>(v); }
  static uint32_t High(uint64_t v) { return static_cast<uint32_t>(v >> 32); }

  uint64_t key_;
  uint64_t counter_low_;
  uint64_t counter_high_;
};

// The words of a stream of blocks, one at a time.
class PhiloxWords {
 public:
  explicit PhiloxWords(const Philox& philox) : philox_(philox) {}
  uint32_t operator()() {
    if (next_ == Philox::kWords) {
      block_ = philox_();
      next_ = 0;
    }
    return block_[next_++];
  }

 private:
  Philox philox_;
  Philox::Block block_{};
  int next_ = Philox::kWords;
};

}  // namespace thalweg
