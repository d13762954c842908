// Flags: which wins, which add up, and what is said about wrong ones.
#include "thalweg/tools/command_line.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "thalweg/tools/help_topics.h"
#include "thalweg/tools/verbs.h"

namespace thalweg::tools {
namespace {

absl::StatusOr<Arguments> Parse(const std::vector<std::string>& arguments) {
  return ParseArguments(kRunVerb.spec(), arguments);
}

void ExpectWrong(const std::vector<std::string>& arguments, absl::string_view words) {
  const absl::StatusOr<Arguments> parsed = Parse(arguments);
  ASSERT_FALSE(parsed.ok()) << words;
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(parsed.status().message(), words)) << parsed.status() << " lacks: " << words;
}

TEST(CommandLineTest, TheLastOfAFlagWinsAndRepeatedOnesAddUp) {
  const absl::StatusOr<Arguments> a =
      Parse({"g.pb", "-d", "CPU:0", "--devices=CPU:1", "-f", "a", "-f", "b", "--pin", "x=CPU:0", "--pin=y=CPU:1"});
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->Value("devices"), "CPU:1");
  EXPECT_EQ(a->All("fetch"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(a->All("pin"), (std::vector<std::string>{"x=CPU:0", "y=CPU:1"}));
  EXPECT_EQ(a->positional(), std::vector<std::string>{"g.pb"});
}

TEST(CommandLineTest, OptionalValuesStandBehindAnEqualsSign) {
  EXPECT_EQ(Parse({"--no-opt", "g.pb", "-f", "a"})->Value("no-opt"), "");
  EXPECT_EQ(Parse({"--no-opt=fold,merge", "g.pb"})->Value("no-opt"), "fold,merge");
  EXPECT_EQ(Parse({"g.pb", "--print"})->Value("print"), "");
  EXPECT_EQ(Parse({"g.pb", "--print=5"})->Value("print"), "5");
  EXPECT_FALSE(Parse({"g.pb"})->Has("print"));
}

TEST(CommandLineTest, SwitchesOnAndOff) {
  EXPECT_TRUE(Parse({"g.pb"})->OnOff("soft-placement", true));
  EXPECT_FALSE(Parse({"g.pb", "--no-soft-placement"})->OnOff("soft-placement", true));
  EXPECT_TRUE(Parse({"g.pb", "--no-soft-placement", "--soft-placement"})->OnOff("soft-placement", true));
  EXPECT_FALSE(Parse({"g.pb", "--soft-placement", "--no-soft-placement"})->OnOff("soft-placement", true));
}

TEST(CommandLineTest, ValuesMayLookLikeAnything) {
  const absl::StatusOr<Arguments> a = Parse(
      {"g.pb", "-i", "x=[[1,2],[3,4]]:i32", "-i", "y=-1.5", "-i", "z={}", "-f", "a b", "-f", "^n", "-i", "[w]=[1]"});
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->All("input"), (std::vector<std::string>{"x=[[1,2],[3,4]]:i32", "y=-1.5", "z={}", "[w]=[1]"}));
  EXPECT_EQ(a->All("fetch"), (std::vector<std::string>{"a b", "^n"}));
}

TEST(CommandLineTest, NamesTheNearestFlag) {
  ExpectWrong({"g.pb", "--fetc", "y"}, "--fetch");
  ExpectWrong({"g.pb", "--time-out=5s"}, "--timeout");
  ExpectWrong({"g.pb", "--frobnicate"}, "unknown flag '--frobnicate'");
  ExpectWrong({"g.pb", "-z"}, "-z");
}

TEST(CommandLineTest, SaysWhatIsMissingOrTooMuch) {
  ExpectWrong({}, "GRAPH");
  ExpectWrong({"a.pb", "b.pb"}, "b.pb");
  ExpectWrong({"g.pb", "--timeout"}, "timeout");
  ExpectWrong({"g.pb", "--json=yes"}, "--json takes no value");
}

TEST(CommandLineTest, HelpNeedsNoArguments) { EXPECT_TRUE(Parse({"--help"})->Has("help")); }

TEST(CommandLineTest, EveryHelpFitsAScreenAndHasThreeExamples) {
  for (const Verb* verb : AllVerbs()) {
    const CommandSpec& spec = verb->spec();
    const std::string help = HelpText(spec);
    EXPECT_LE(std::count(help.begin(), help.end(), '\n'), 40) << spec.verb;
    for (absl::string_view line : absl::StrSplit(help, '\n')) EXPECT_LE(line.size(), 120u) << line;
    EXPECT_EQ(spec.examples.size(), 3u) << spec.verb;
  }
  for (const HelpTopic& topic : HelpTopics()) {
    EXPECT_LE(std::count(topic.text.begin(), topic.text.end(), '\n'), 40) << topic.name;
  }
}

TEST(CommandLineTest, TheLastPairWins) {
  const absl::StatusOr<Arguments> a =
      ParseArguments(kInspectVerb.spec(), {"g.pb", "--path", "a", "b", "--path", "c", "d"});
  ASSERT_TRUE(a.ok()) << a.status();
  EXPECT_EQ(a->All("path"), (std::vector<std::string>{"c", "d"}));
}

TEST(CommandLineTest, ExamplesParse) {
  for (const Verb* verb : AllVerbs()) {
    for (const char* example : verb->spec().examples) {
      std::vector<std::string> words = absl::StrSplit(absl::string_view(example), ' ');
      const auto program = std::find(words.begin(), words.end(), "thalweg");
      ASSERT_NE(program, words.end()) << example;
      words.erase(words.begin(), program + 1);
      if (words[0][0] == '-') continue;  // thalweg --version
      const Verb* named = FindVerb(words[0]);
      ASSERT_NE(named, nullptr) << example;
      words.erase(words.begin());
      EXPECT_TRUE(ParseArguments(named->spec(), words).ok()) << example;
    }
  }
}

}  // namespace
}  // namespace thalweg::tools
