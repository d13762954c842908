#include "thalweg/tools/latency.h"

#include <algorithm>
#include <cmath>

namespace thalweg::tools {

LatencyHistogram::LatencyHistogram() : buckets_(static_cast<size_t>(BucketOf(INT64_MAX)) + 1, 0) {}

// Below 2^(kSubBits + 1) every value has its bucket; above, each power of two is cut into 2^kSubBits equal parts.
int LatencyHistogram::BucketOf(int64_t nanos) {
  const uint64_t value = static_cast<uint64_t>(std::max<int64_t>(nanos, 0));
  const int bits = value == 0 ? 0 : 64 - __builtin_clzll(value);
  const int shift = std::max(bits - (kSubBits + 1), 0);
  return (shift << kSubBits) + static_cast<int>(value >> shift);
}

int64_t LatencyHistogram::LowestOf(int bucket) {
  const int shift = std::max((bucket >> kSubBits) - 1, 0);
  return static_cast<int64_t>(bucket - (shift << kSubBits)) << shift;
}

void LatencyHistogram::Add(int64_t nanos) {
  ++buckets_[BucketOf(nanos)];
  ++count_;
  min_ = std::min(min_, nanos);
  max_ = std::max(max_, nanos);
  sum_ += static_cast<double>(nanos);
}

void LatencyHistogram::Add(const LatencyHistogram& other) {
  for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

int64_t LatencyHistogram::Percentile(double share) const {
  // 0.999 of 1000 is 999, whatever the rounding of a share that was once a percentage.
  const int64_t rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_) * (1 - 1e-12)));
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i];
    if (seen >= rank && seen > 0) return std::clamp(LowestOf(static_cast<int>(i)), min_, max_);
  }
  return 0;
}

}  // namespace thalweg::tools
