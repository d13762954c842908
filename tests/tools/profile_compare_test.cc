#include "thalweg/tools/profile_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "absl/strings/str_cat.h"

namespace thalweg::tools {
namespace {

using nlohmann::json;

// A profile of 30 steps of 40 nodes. Like a busy machine's, noise only adds: usually `noise` of a node's time, now and then much
// more. `factors` plants changes, `all` the machine's mood.
json MakeProfile(std::mt19937& random, double noise, double all, const std::map<int, double>& factors) {
  json rows = json::array();
  std::exponential_distribution<double> scatter(1 / noise);
  std::bernoulli_distribution interrupted(0.2);
  std::vector<double> steps(30, 0);
  for (int n = 0; n < 40; ++n) {
    const double base = (1000.0 + 500 * n) * all * (factors.count(n) ? factors.at(n) : 1);
    std::vector<double> times;
    for (double& step : steps) {
      times.push_back(base * (1 + scatter(random) * (interrupted(random) ? 20 : 1)));
      step += times.back();
    }
    std::sort(times.begin(), times.end());
    rows.push_back({{"type", "node"}, {"name", absl::StrCat("n", n)}, {"op", "Conv2D"}, {"device", "/device:CPU:0"},
                    {"time_ns", std::accumulate(times.begin(), times.end(), 0.0) / 30}, {"least_ns", {times[0], times[1]}}});
  }
  std::vector<double> sorted = steps;
  std::sort(sorted.begin(), sorted.end());
  return {{"schema", "thalweg.profile/1"}, {"step", {{"p50_ns", sorted[15]}, {"block_ns", steps}}}, {"rows", rows}};
}

int Significant(const ProfileComparison& c) {
  int count = 0;
  for (const Difference& d : c.differences) count += d.significant;
  return count;
}

TEST(CompareProfiles, EqualProfilesDifferInNothingEvenOnAnotherDay) {
  std::mt19937 random(7);
  int alarms = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const json a = MakeProfile(random, 0.05, 1, {});
    const json b = MakeProfile(random, 0.05, 1 + 0.01 * (trial % 9), {});
    const auto comparison = CompareProfiles(a, b);
    ASSERT_TRUE(comparison.ok());
    alarms += Significant(*comparison) > 0 || comparison->significant;
  }
  EXPECT_LE(alarms, 5) << "1 in 20 is allowed";
}

TEST(CompareProfiles, FindsANodeThatTakesFivePercentMore) {
  std::mt19937 random(8);
  int found = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const auto c = CompareProfiles(MakeProfile(random, 0.05, 1, {}), MakeProfile(random, 0.05, 1.03, {{30, 1.05}}));
    ASSERT_TRUE(c.ok());
    found += Significant(*c) == 1 && c->differences[0].name == "n30" && c->differences[0].cause == DifferenceCause::kKernel;
  }
  EXPECT_GE(found, 18);
}

TEST(CompareProfiles, TellsMovesNewAndGoneNodesAndTransfersApart) {
  std::mt19937 random(9);
  const json a = MakeProfile(random, 0.01, 1, {});
  json b = a;
  b["rows"][39]["device"] = "/device:CPU:1";
  b["rows"][38]["name"] = "renamed";
  b["rows"][37]["name"] = "fused";
  b["rows"][37]["stands_for"] = {"n37"};
  b["rows"].push_back({{"type", "transfer"}, {"tensor", "n39:0"}, {"from", "a"}, {"to", "b"}, {"count", 2}, {"time_ns", 900}});
  const auto c = CompareProfiles(a, b);
  ASSERT_TRUE(c.ok());
  std::map<DifferenceCause, std::string> names;
  for (const Difference& d : c->differences) names[d.cause] = d.name;
  EXPECT_EQ(names[DifferenceCause::kPlacement], "n39");
  EXPECT_EQ(names[DifferenceCause::kGone], "n38");
  EXPECT_EQ(names[DifferenceCause::kNew], "renamed");
  EXPECT_EQ(names.count(DifferenceCause::kTransfer), 1u);
  EXPECT_EQ(c->differences.size(), 4u) << "a rewritten node is matched by the node it stands for";
  EXPECT_EQ(c->transfers_after, 2);
}

TEST(CompareProfiles, WantsProfiles) {
  EXPECT_FALSE(CompareProfiles(json::object(), json::object()).ok());
  EXPECT_FALSE(CompareProfiles({{"schema", "thalweg.profile/1"}}, {{"schema", "thalweg.profile/1"}}).ok());
}

TEST(ComparePlacements, ListsMoves) {
  const json a = {{"schema", "thalweg.placement/1"}, {"nodes", {{"x", "CPU:0"}, {"y", "CPU:0"}, {"z", "CPU:1"}}}};
  const json b = {{"schema", "thalweg.placement/1"}, {"nodes", {{"x", "CPU:0"}, {"y", "CPU:1"}}}};
  const auto c = ComparePlacements(a, b);
  ASSERT_TRUE(c.ok());
  ASSERT_EQ(c->moves.size(), 2u);
  EXPECT_EQ(c->moves[0].node, "y");
  EXPECT_EQ(c->moves[1].to, "");
  EXPECT_EQ(c->unchanged, 1u);
}

}  // namespace
}  // namespace thalweg::tools
