// Comparing values with references.
#include "thalweg/tools/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/match.h"

namespace thalweg::tools {
namespace {

// The difference between two vectors, the second through the form of a .npy file.
template <typename T>
std::string Diff(const std::vector<T>& got, const std::vector<T>& expected, const Tolerances& tolerances = {}) {
  const Tensor a = *Tensor::Of<T>(got, Shape::Of({static_cast<int64_t>(got.size())}));
  const Tensor e = *Tensor::Of<T>(expected, Shape::Of({static_cast<int64_t>(expected.size())}));
  const std::unique_ptr<NpyFile> file = *NpyFromTensor(e);
  auto bytes = std::make_shared<std::string>(file->header + std::string(file->data));
  const absl::string_view view = *bytes;
  return Difference(a, *ParseNpy(view, bytes, "ref"), tolerances);
}

TEST(CompareTest, FloatsWithinTheTolerance) {
  EXPECT_EQ(Diff<float>({1, 2}, {1, 2}), "");
  EXPECT_EQ(Diff<float>({1.000001f}, {1}), "");
  const std::string difference = Diff<float>({1, 3}, {1, 2});
  EXPECT_TRUE(absl::StrContains(difference, "1 of 2")) << difference;
  EXPECT_TRUE(absl::StrContains(difference, "[1]")) << difference;
  EXPECT_TRUE(absl::StrContains(difference, "got 3, expected 2")) << difference;
}

TEST(CompareTest, NanAndInfinity) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Diff<float>({nan, inf, -inf}, {nan, inf, -inf}), "");
  EXPECT_NE(Diff<float>({inf}, {-inf}), "");
  EXPECT_NE(Diff<float>({inf}, {3e38f}), "");
  EXPECT_NE(Diff<float>({nan}, {1}), "");
}

TEST(CompareTest, OtherTypesExactly) {
  EXPECT_EQ(Diff<int64_t>({INT64_MAX}, {INT64_MAX}), "");
  EXPECT_NE(Diff<int64_t>({INT64_MAX}, {INT64_MAX - 1}), "");
  EXPECT_EQ(Diff<std::string>({"a", ""}, {"a", ""}), "");
  EXPECT_NE(Diff<std::string>({"a"}, {"b"}), "");
  EXPECT_NE(Diff<bool>({true}, {false}), "");
}

TEST(CompareTest, ShapesAndTypes) { EXPECT_TRUE(absl::StrContains(Diff<float>({1, 2}, {1}), "float32[2]")); }

TEST(CompareTest, TolerancesAsGiven) {
  Tolerances tolerances;
  ASSERT_TRUE(tolerances.Read("f32=0.1,f64=0.5:0.25").ok());
  EXPECT_EQ(Diff<float>({1.05f}, {1}, tolerances), "");
  EXPECT_NE(Diff<float>({1.2f}, {1}, tolerances), "");
  EXPECT_EQ(Diff<double>({0.2}, {0}, tolerances), "");
  ASSERT_TRUE(tolerances.Read("1e-3").ok());
  EXPECT_NE(Diff<double>({0.2}, {0}, tolerances), "");
  for (const char* text : {"f32", "f32=x", "f33=1", "f32=-1", "f32=1:x"})
    EXPECT_FALSE(Tolerances().Read(text).ok()) << text;
}

}  // namespace
}  // namespace thalweg::tools
