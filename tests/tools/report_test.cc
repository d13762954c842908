// Tables, quoting, nearest words, release names.
#include "thalweg/tools/report.h"

#include <gtest/gtest.h>

#include "thalweg/tools/producer.h"

namespace thalweg::tools {
namespace {

TEST(ReportTest, TablesAlignAndEndWithoutBlanks) {
  Table table({Table::Align::kLeft, Table::Align::kRight, Table::Align::kLeft});
  table.AddRow({"a", "1", "x"});
  table.AddRow({"long", "1 234"});
  EXPECT_EQ(table.ToString(), "a         1  x\nlong  1 234\n");
}

TEST(ReportTest, TablesCountCharactersNotBytes) {
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  table.AddRow({"\xC3\xA9\xC3\xA9", "x"});
  table.AddRow({"ab", "y"});
  EXPECT_EQ(table.ToString(), "\xC3\xA9\xC3\xA9  x\nab  y\n");
}

TEST(ReportTest, ControlCharactersDoNotReachATerminal) {
  Table table({Table::Align::kLeft});
  table.AddRow({"a\rb\x07"});
  EXPECT_EQ(table.ToString(), "a\\x0db\\x07\n");
}

TEST(ReportTest, QuotesForAShell) {
  EXPECT_EQ(ShellQuote("a/b.pb"), "a/b.pb");
  EXPECT_EQ(ShellQuote("a b"), "'a b'");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("conv.*"), "'conv.*'");
}

TEST(ReportTest, FindsNearWordsOnly) {
  const std::vector<std::string> words = {"inspect", "run", "bench"};
  EXPECT_EQ(NearestWords("inpsect", words), std::vector<std::string>{"inspect"});
  EXPECT_EQ(NearestWords("BENCH", words), std::vector<std::string>{"bench"});
  EXPECT_TRUE(NearestWords("xyzzy-something", words).empty());
}

TEST(ReportTest, ShortensInTheMiddle) {
  EXPECT_EQ(Ellipsis("short", 10), "short");
  EXPECT_EQ(Ellipsis("0123456789abcdef", 10), "0123...def");
}

TEST(ReportTest, NamesReleases) {
  EXPECT_EQ(ReleaseOfProducer(0), "");
  EXPECT_EQ(ReleaseOfProducer(27), "TensorFlow 1.13");
  EXPECT_EQ(ReleaseOfProducer(1087), "TensorFlow 2.9");
  EXPECT_EQ(ReleaseOfProducer(1000), "TensorFlow 2.8-2.9");
  EXPECT_EQ(ReleaseOfProducer(5), "before TensorFlow 1.0");
  EXPECT_EQ(ReleaseOfProducer(9999), "newer than TensorFlow 2.21");
}

TEST(ReportTest, ExitCodesOfStatuses) {
  EXPECT_EQ(ExitCodeOfRun(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeOfRun(absl::InvalidArgumentError("")), 1);
  EXPECT_EQ(ExitCodeOfRun(absl::ResourceExhaustedError("")), 5);
  EXPECT_EQ(ExitCodeOfRun(absl::DeadlineExceededError("")), 6);
  EXPECT_EQ(ExitCodeOfLoad(absl::NotFoundError("")), 3);
  EXPECT_EQ(ExitCodeOfLoad(absl::ResourceExhaustedError("")), 5);
}

}  // namespace
}  // namespace thalweg::tools
