// Latencies of many runs in bounded memory: exact minimum, mean and maximum; percentiles from a histogram whose buckets
// are less than 1% wide.
#pragma once

#include <cstdint>
#include <vector>

namespace thalweg::tools {

class LatencyHistogram {
 public:
  LatencyHistogram();
  void Add(int64_t nanos);
  void Add(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  int64_t min() const { return count_ > 0 ? min_ : 0; }
  int64_t max() const { return max_; }
  int64_t mean() const { return count_ > 0 ? static_cast<int64_t>(sum_ / static_cast<double>(count_)) : 0; }
  // The smallest latency that at least this share of the runs did not exceed; 0 without runs. Requires 0 < share <= 1.
  int64_t Percentile(double share) const;

 private:
  static constexpr int kSubBits = 7;  // 128 buckets for every power of two
  static int BucketOf(int64_t nanos);
  static int64_t LowestOf(int bucket);

  std::vector<int64_t> buckets_;
  int64_t count_ = 0;
  int64_t min_ = INT64_MAX;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace thalweg::tools
