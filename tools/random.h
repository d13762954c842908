// The random numbers of inputs: the same seed gives the same values on every machine and in every version.
#pragma once

#include <cmath>
#include <cstdint>

namespace thalweg::tools {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : state_(seed) {}

  // SplitMix64: a counter through a mixing function.
  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // In [0, 1), with 53 random bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Mean 0, deviation 1 (Box-Muller).
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(6.283185307179586 * Uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace thalweg::tools
