// Quantities as people write them.
#include "thalweg/tools/units.h"

#include <gtest/gtest.h>

#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

TEST(UnitsTest, ReadsTimes) {
  EXPECT_EQ(*ParseNanos("5s"), 5'000'000'000);
  EXPECT_EQ(*ParseNanos("0.25s"), 250'000'000);
  EXPECT_EQ(*ParseNanos("250ms"), 250'000'000);
  EXPECT_EQ(*ParseNanos("30us"), 30'000);
  EXPECT_EQ(*ParseNanos("100ns"), 100);
  EXPECT_EQ(*ParseNanos("2m"), 120'000'000'000);
  EXPECT_EQ(*ParseNanos("1.5"), 1'500'000'000);
  EXPECT_EQ(*ParseNanos("1e3ms"), 1'000'000'000);
  EXPECT_EQ(*ParseNanos("0"), 0);
  for (const char* text : {"", "s", "-1s", "5 s", "5x", "1e300s", "nan", "abc", "5ss"})
    EXPECT_FALSE(ParseNanos(text).ok()) << text;
}

TEST(UnitsTest, ReadsAmountsOfMemory) {
  EXPECT_EQ(*ParseBytes("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(*ParseBytes("1.5K"), 1536);
  EXPECT_EQ(*ParseBytes("2GB"), 2'000'000'000);
  EXPECT_EQ(*ParseBytes("4096"), 4096);
  for (const char* text : {"", "GiB", "-1", "1e30", "1PiB", "2 GiB"}) EXPECT_FALSE(ParseBytes(text).ok()) << text;
}

TEST(UnitsTest, ReadsLists) {
  EXPECT_EQ(*ParseIntegerList("1,2,8", 1, 100), (std::vector<int64_t>{1, 2, 8}));
  EXPECT_EQ(*ParseIntegerList("1:8:2", 1, 100), (std::vector<int64_t>{1, 3, 5, 7}));
  EXPECT_EQ(*ParseIntegerList("3:5", 1, 100), (std::vector<int64_t>{3, 4, 5}));
  for (const char* text : {"", "1,", "0", "101", "5:1", "1:2:3:4", "1:100:0", "a"})
    EXPECT_FALSE(ParseIntegerList(text, 1, 100).ok()) << text;
  EXPECT_EQ(*ParseNumberList("50,99.9", 100), (std::vector<double>{50, 99.9}));
  for (const char* text : {"", "1,", "0", "-1", "100.5", "a", "nan", "inf"}) EXPECT_FALSE(ParseNumberList(text, 100).ok()) << text;
}

TEST(UnitsTest, ReadsShapes) {
  EXPECT_EQ(*ParseShape("8x224x3"), Shape::Of({8, 224, 3}));
  EXPECT_EQ(*ParseShape(""), Shape());
  EXPECT_EQ(*ParseShape("scalar"), Shape());
  EXPECT_EQ(*ParseShape("0"), Shape::Of({0}));
  EXPECT_EQ(ParsePartialShape("?x3")->ToString(), "[?,3]");
  for (const char* text : {"x", "8x", "-1", "8x-2", "?", "9999999999999999999", "4294967296x4294967296"})
    EXPECT_FALSE(ParseShape(text).ok()) << text;
}

TEST(UnitsTest, ReadsShares) {
  EXPECT_DOUBLE_EQ(*ParseFraction("2%"), 0.02);
  EXPECT_DOUBLE_EQ(*ParseFraction("0.5"), 0.5);
  for (const char* text : {"", "0", "-1%", "200%", "x%"}) EXPECT_FALSE(ParseFraction(text).ok()) << text;
}

TEST(UnitsTest, PrintsQuantities) {
  EXPECT_EQ(FormatNanos(850), "850 ns");
  EXPECT_EQ(FormatNanos(12345), "12.3 us");
  EXPECT_EQ(FormatNanos(4.56e6), "4.56 ms");
  EXPECT_EQ(FormatNanos(999.6e6), "1.00 s");
  EXPECT_EQ(FormatBytes(12), "12 B");
  EXPECT_EQ(FormatBytes(29779558), "28.4 MiB");
  EXPECT_EQ(FormatBytes(1023.9), "1.00 KiB");
  EXPECT_EQ(FormatCount(1841), "1 841");
  EXPECT_EQ(FormatCount(-1234567), "-1 234 567");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatShort(6.8e6), "6.80 M");
  EXPECT_EQ(Plural(1, "node"), "1 node");
  EXPECT_EQ(Plural(0, "node"), "0 nodes");
}

}  // namespace
}  // namespace thalweg::tools
