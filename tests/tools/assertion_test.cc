// Bounds on figures: units, relations, and what is refused.
#include "thalweg/tools/assertion.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace thalweg::tools {
namespace {

constexpr FigureName kFigures[] = {
    {"p50", FigureUnit::kNanos}, {"peak_rss", FigureUnit::kBytes}, {"nodes", FigureUnit::kNumber}};

Assertion Parse(absl::string_view text) {
  const absl::StatusOr<Assertion> assertion = ParseAssertion(text, kFigures);
  EXPECT_TRUE(assertion.ok()) << assertion.status();
  return assertion.ok() ? *assertion : Assertion();
}

TEST(AssertionTest, BoundsHaveTheUnitOfTheirFigure) {
  EXPECT_EQ(Parse("p50<2ms").bound, 2e6);
  EXPECT_EQ(Parse("peak_rss <= 1GiB").bound, 1073741824.0);
  EXPECT_EQ(Parse(" nodes==3 ").bound, 3.0);
  EXPECT_EQ(Parse("nodes==3").figure, 2u);
}

TEST(AssertionTest, Relations) {
  EXPECT_TRUE(Parse("nodes<3").HoldsFor(2));
  EXPECT_FALSE(Parse("nodes<3").HoldsFor(3));
  EXPECT_TRUE(Parse("nodes<=3").HoldsFor(3));
  EXPECT_TRUE(Parse("nodes>3").HoldsFor(4));
  EXPECT_FALSE(Parse("nodes>=3").HoldsFor(2));
  EXPECT_TRUE(Parse("nodes==3").HoldsFor(3));
  EXPECT_FALSE(Parse("nodes==3").HoldsFor(4));
}

TEST(AssertionTest, MistakesAreNamed) {
  for (const char* text : {"", "p50", "p51<2ms", "p50<", "p50<x", "p50<>3", "p50=3", "<3", "nodes<2ms", "peak_rss<1s"}) {
    EXPECT_EQ(ParseAssertion(text, kFigures).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(absl::StrContains(ParseAssertion("p51<2ms", kFigures).status().message(), "peak_rss"));
}

}  // namespace
}  // namespace thalweg::tools
