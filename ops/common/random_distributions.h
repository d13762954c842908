// From random bits to random numbers, number for number as TensorFlow makes them (the conformance cases hold its streams).
//
// A distribution has a result type, a fixed number of results per group, and the number of generator blocks from one group
// to the next; groups are independent, so threads may share a tensor at any group.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "thalweg/ops/common/philox.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/proto/dtype.h"

namespace thalweg {

// [0, 1): the low bits as mantissa.
inline float UnitFloat(uint32_t word) { return static_cast<float>(word & 0x7fffff) * 0x1p-23f; }
inline double UnitDouble(uint32_t high, uint32_t low) {
  return static_cast<double>(uint64_t{high & 0xfffff} << 32 | low) * 0x1p-52;
}

// 32-bit words that a number of type T takes.
template <typename T> inline constexpr int kWordsPerNumber = sizeof(T) == 8 ? 2 : 1;

template <typename T>
struct UniformReal {
  using Result = T;
  static constexpr int kPerGroup = Philox::kWords / kWordsPerNumber<T>;
  static constexpr int kBlocksPerGroup = 1;

  void operator()(Philox philox, T* out) const {
    const Philox::Block words = philox();
    for (int i = 0; i < kPerGroup; ++i) {
      if constexpr (std::is_same_v<T, double>) out[i] = UnitDouble(words[2 * i], words[2 * i + 1]);
      else if constexpr (std::is_same_v<T, float>) out[i] = UnitFloat(words[i]);
      else if constexpr (std::is_same_v<T, half>) out[i] = half(static_cast<float>(words[i] & 0x3ff) * 0x1p-10f);
      else out[i] = bfloat16(static_cast<float>(words[i] & 0x7f) * 0x1p-7f);
    }
  }
};

// All values of an integer type.
template <typename T>
struct UniformBits {
  using Result = T;
  static constexpr int kPerGroup = Philox::kWords / kWordsPerNumber<T>;
  static constexpr int kBlocksPerGroup = 1;

  void operator()(Philox philox, T* out) const {
    const Philox::Block words = philox();
    for (int i = 0; i < kPerGroup; ++i) {
      if constexpr (sizeof(T) == 8) out[i] = static_cast<T>(uint64_t{words[2 * i]} | uint64_t{words[2 * i + 1]} << 32);
      else out[i] = static_cast<T>(words[i]);
    }
  }
};

// [low, high). Requires low < high.
template <typename T>
struct UniformInteger {
  using Result = T;
  static constexpr int kPerGroup = UniformBits<T>::kPerGroup;
  static constexpr int kBlocksPerGroup = 1;

  UniformInteger(T low, T high) : low_(static_cast<U>(low)), range_(static_cast<U>(high) - low_) {}
  void operator()(Philox philox, T* out) const {
    U bits[kPerGroup];
    UniformBits<U>()(philox, bits);
    for (int i = 0; i < kPerGroup; ++i) out[i] = static_cast<T>(low_ + bits[i] % range_);
  }

 private:
  using U = std::make_unsigned_t<T>;
  U low_;
  U range_;
};

// Two normal numbers from two uniform ones (Box and Muller).
inline void NormalPair(float u1, float u2, float* out) {
  constexpr float kLeast = 1.0e-7f;
  const float angle = static_cast<float>(2.0 * std::numbers::pi * static_cast<double>(u2));
  const float radius = std::sqrt(-2.0f * std::log(u1 < kLeast ? kLeast : u1));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}
inline void NormalPair(double u1, double u2, double* out) {
  constexpr double kLeast = 1.0e-7;
  const double angle = 2.0 * std::numbers::pi * u2;
  const double radius = std::sqrt(-2.0 * std::log(u1 < kLeast ? kLeast : u1));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

template <typename T>
struct Normal {
  using Result = T;
  static constexpr int kPerGroup = Philox::kWords / kWordsPerNumber<T>;
  static constexpr int kBlocksPerGroup = 1;

  void operator()(Philox philox, T* out) const {
    const Philox::Block words = philox();
    if constexpr (std::is_same_v<T, double>) {
      NormalPair(UnitDouble(words[0], words[1]), UnitDouble(words[2], words[3]), out);
    } else {
      for (int i = 0; i < kPerGroup; i += 2) {
        float pair[2];
        NormalPair(UnitFloat(words[i]), UnitFloat(words[i + 1]), pair);
        out[i] = static_cast<T>(pair[0]);
        out[i + 1] = static_cast<T>(pair[1]);
      }
    }
  }
};

// Normal numbers, drawn again until they lie within two standard deviations; a group has blocks for 256 draws per result.
template <typename T>
struct TruncatedNormalNumber {
  using Result = T;
  static constexpr int kPerGroup = Normal<T>::kPerGroup;
  static constexpr int kBlocksPerGroup = kPerGroup * 256 / Philox::kWords;

  void operator()(Philox philox, T* out) const {
    using Computing = std::conditional_t<std::is_same_v<T, double>, double, float>;
    PhiloxWords words(philox);
    const auto next = [&words]() -> Computing {
      const uint32_t first = words();
      if constexpr (std::is_same_v<T, double>) return UnitDouble(first, words());
      else return UnitFloat(first);
    };
    for (int done = 0; done < kPerGroup;) {
      const Computing u1 = next(), u2 = next();
      Computing pair[2];
      NormalPair(u1, u2, pair);
      for (int i = 0; i < 2 && done < kPerGroup; ++i) {
        if (std::fabs(pair[i]) < Computing(2)) out[done++] = static_cast<T>(pair[i]);
      }
    }
  }
};

// Fills `count` numbers, on several threads where it pays.
template <typename Distribution>
void FillRandom(KernelContext& ctx, const Philox& philox, const Distribution& distribution, typename Distribution::Result* out,
                int64_t count) {
  constexpr int kPerGroup = Distribution::kPerGroup;
  const int64_t groups = count / kPerGroup + (count % kPerGroup != 0 ? 1 : 0);
  ctx.ParallelFor(groups, 20.0 * kPerGroup, [&](int64_t begin, int64_t end) {
    Philox at = philox;
    at.Skip(static_cast<uint64_t>(begin) * Distribution::kBlocksPerGroup);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kPerGroup;
      if (count - first >= kPerGroup) {
        distribution(at, out + first);
      } else {
        typename Distribution::Result last[kPerGroup];
        distribution(at, last);
        for (int64_t i = first; i < count; ++i) out[i] = last[i - first];
      }
      at.Skip(Distribution::kBlocksPerGroup);
    }
  });
}

}  // namespace thalweg
