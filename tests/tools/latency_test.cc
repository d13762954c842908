// Percentiles from a histogram: within one per cent of the exact ones.
#include "thalweg/tools/latency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "thalweg/tools/random.h"

namespace thalweg::tools {
namespace {

TEST(LatencyTest, PercentilesAreWithinOnePerCent) {
  RandomSource random(7);
  std::vector<int64_t> values;
  LatencyHistogram histogram;
  for (int i = 0; i < 20000; ++i) {
    const int64_t nanos = static_cast<int64_t>(std::exp(random.Uniform() * 25));
    values.push_back(nanos);
    histogram.Add(nanos);
  }
  std::sort(values.begin(), values.end());
  for (const double share : {0.01, 0.5, 0.9, 0.95, 0.99, 1.0}) {
    const double exact = static_cast<double>(values[static_cast<size_t>(std::ceil(share * 20000)) - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(share)), exact, exact * 0.01) << share;
  }
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
  EXPECT_EQ(histogram.count(), 20000);
}

// Small values have buckets of their own.
TEST(LatencyTest, RanksAreExact) {
  LatencyHistogram histogram;
  for (int64_t v = 1; v <= 100; ++v) histogram.Add(v);
  for (int p = 1; p <= 100; ++p) EXPECT_EQ(histogram.Percentile(static_cast<double>(p) / 100), p);
  EXPECT_EQ(histogram.Percentile(50.5 / 100), 51);
  EXPECT_EQ(histogram.Percentile(0), 1);
  LatencyHistogram one_in_a_thousand;
  for (int i = 0; i < 999; ++i) one_in_a_thousand.Add(5);
  one_in_a_thousand.Add(100);
  EXPECT_EQ(one_in_a_thousand.Percentile(99.9 / 100), 5);
  EXPECT_EQ(one_in_a_thousand.Percentile(99.95 / 100), 100);
}

TEST(LatencyTest, SmallAndHugeValues) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(0.5), 0);
  histogram.Add(0);
  histogram.Add(INT64_MAX);
  EXPECT_EQ(histogram.Percentile(0.5), 0);
  EXPECT_GT(histogram.Percentile(1), INT64_MAX / 100 * 99);
}

TEST(LatencyTest, AddsUp) {
  LatencyHistogram a, b;
  a.Add(10);
  b.Add(30);
  a.Add(b);
  EXPECT_EQ(a.count(), 2);
  EXPECT_EQ(a.mean(), 20);
  EXPECT_EQ(a.min(), 10);
  EXPECT_EQ(a.max(), 30);
}

}  // namespace
}  // namespace thalweg::tools
