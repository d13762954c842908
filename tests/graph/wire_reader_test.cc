// The fields of a message without the generated classes.
#include "thalweg/graph/wire_reader.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;

// Number of fields, or -1 if the message is at fault; the fault then contains `word`.
int CountFields(absl::string_view bytes, const std::string& word = "") {
  WireReader reader(bytes);
  int count = 0;
  for (WireField field; reader.Next(&field);) ++count;
  if (reader.status().ok()) return count;
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr(word));
  return -1;
}

TEST(WireReader, ReadsEveryWireType) {
  const std::string bytes("\x08\x96\x01\x11\x01\x02\x03\x04\x05\x06\x07\x08\x1a\x02hi\x25\x01\x00\x00\x80", 21);
  WireReader reader(bytes);
  WireField field;
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_TRUE(field.Is(1, WireType::kVarint));
  EXPECT_EQ(field.value, 150u);
  EXPECT_EQ(field.encoded.size(), 3u);
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_EQ(field.value, 0x0807060504030201u);
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_EQ(field.bytes, "hi");
  EXPECT_EQ(field.encoded.size(), 4u);
  ASSERT_TRUE(reader.Next(&field));
  EXPECT_EQ(field.value, 0x80000001u);
  EXPECT_FALSE(reader.Next(&field));
  EXPECT_TRUE(reader.status().ok());
}

TEST(WireReader, Rule23FaultsAreSaid) {
  EXPECT_EQ(CountFields("\x08", "truncated"), -1);
  EXPECT_EQ(CountFields("\x08\x80", "truncated"), -1);
  EXPECT_EQ(CountFields("\x0a\x05" "abc", "needs 5 bytes but only 3"), -1);
  EXPECT_EQ(CountFields("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "needs 9223372036854775807"), -1);
  EXPECT_EQ(CountFields("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "ten bytes"), -1);
  EXPECT_EQ(CountFields(absl::string_view("\x00\x01", 2), "field number"), -1);
  EXPECT_EQ(CountFields("\x0e\x01", "wire type"), -1);
  EXPECT_EQ(CountFields("\x0c", "group"), -1);
  EXPECT_EQ(CountFields("\x0b\x14", "another group"), -1);
  EXPECT_EQ(CountFields("\x0b\x08\x01", "truncated"), -1);
  EXPECT_EQ(CountFields(std::string(200, '\x0b'), "deeper"), -1);
}

TEST(WireReader, SkipsGroups) {
  EXPECT_EQ(CountFields("\x0b\x08\x01\x13\x14\x0c\x08\x01"), 2);
  EXPECT_EQ(CountFields(""), 0);
}

}  // namespace
}  // namespace thalweg
