// Configuration files: what is read, what is refused, and that strings survive.
#include "thalweg/tools/config_file.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace thalweg::tools {
namespace {

std::string WrongLine(absl::string_view text) {
  const absl::StatusOr<std::vector<ConfigEntry>> parsed = ParseConfig(text, "f");
  return parsed.ok() ? "it parses" : std::string(parsed.status().message());
}

TEST(ConfigFileTest, ReadsStringsNumbersBooleansAndArrays) {
  const auto parsed = ParseConfig("# title\n\na = \"x # y\"  # comment\r\nb=true\nc-d = -1.5e+3\ne = []\nf = ['p\\', \"q\",\n # between\n]", "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 5u);
  EXPECT_EQ((*parsed)[0].values, std::vector<std::string>{"x # y"});
  EXPECT_EQ((*parsed)[0].line, 3);
  EXPECT_EQ((*parsed)[1].values, std::vector<std::string>{"true"});
  EXPECT_EQ((*parsed)[2].key, "c-d");
  EXPECT_EQ((*parsed)[2].values, std::vector<std::string>{"-1.5e+3"});
  EXPECT_TRUE((*parsed)[3].is_array && (*parsed)[3].values.empty());
  EXPECT_EQ((*parsed)[4].values, (std::vector<std::string>{"p\\", "q"}));
  EXPECT_EQ((*parsed)[4].line, 7);
}

TEST(ConfigFileTest, EveryStringSurvives) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  const auto parsed = ParseConfig(absl::StrCat("a = ", TomlString(all)), "f");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ((*parsed)[0].values[0], all);
}

TEST(ConfigFileTest, MistakesAreRefusedWithTheirLine) {
  for (const char* text : {"a", "a =", "a = b", "= 1", "a = \"x", "a = 'x\n'", "a = [1", "a = [1 2]", "a = 1 2", "a = \"\\q\"", "a = \"\\u00ff\"", "[t]", "a.b = 1"}) {
    EXPECT_TRUE(absl::StrContains(WrongLine(absl::StrCat("ok = 1\n", text)), "f line 2")) << text << ": " << WrongLine(text);
  }
  EXPECT_TRUE(absl::StrContains(WrongLine("a = 1\na = 2"), "line 1 already"));
}

}  // namespace
}  // namespace thalweg::tools
