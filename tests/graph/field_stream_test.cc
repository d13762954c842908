// Fields of a message in memory and in a file: the same, whatever their sizes and wherever a window ends.
#include "thalweg/graph/field_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

namespace thalweg {
namespace {

std::string Varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out.push_back(static_cast<char>(value | 128));
  out.push_back(static_cast<char>(value));
  return out;
}

std::string BytesField(uint32_t number, const std::string& content) {
  return Varint(number << 3 | 2) + Varint(content.size()) + content;
}

struct Seen {
  uint32_t number;
  uint64_t offset;
  std::string bytes;
  bool operator==(const Seen&) const = default;
};

class FieldStreamTest : public ::testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }

  InputFile Write(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return *InputFile::Open(path_);
  }
  static std::vector<Seen> All(FieldStream& stream, bool contents = true) {
    std::vector<Seen> all;
    for (StreamField field; stream.Next(&field, contents);)
      all.push_back({field.wire.number, field.offset, contents ? std::string(field.wire.bytes) : ""});
    return all;
  }

  const std::string path_ = ::testing::TempDir() + "field_stream_test." + std::to_string(getpid());
};

TEST_F(FieldStreamTest, AFileHasTheFieldsOfItsBytes) {
  std::string message;
  for (uint32_t i = 1; i < 400; ++i) {
    const size_t size = i % 50 == 0 ? 60000 + 1000 * (i / 50) : i * 37 % 3000;  // around the size of a large field
    message += BytesField(i, std::string(size, static_cast<char>('a' + i % 26)));
    message += Varint(500 << 3) + Varint(i * 12345678901ull);
  }
  message += "\xa3\x3f\x08\x01\xa4\x3f";  // a group
  const InputFile file = Write(message);
  FieldStream in_memory(message, nullptr), in_file(file);
  const std::vector<Seen> expected = All(in_memory), got = All(in_file);
  ASSERT_TRUE(in_memory.status().ok() && in_file.status().ok()) << in_file.status();
  EXPECT_TRUE(expected == got);
  EXPECT_EQ(expected.size(), 799u);

  in_file.Rewind();
  in_memory.Rewind();
  const std::vector<Seen> skimmed = All(in_file, false);
  EXPECT_TRUE(skimmed == All(in_memory, false));
}

TEST_F(FieldStreamTest, LargeFieldsLiveAsLongAsTheirOwner) {
  const InputFile file = Write(BytesField(1, std::string(1 << 20, 'x')) + BytesField(2, "small"));
  FieldStream stream(file);
  StreamField large, small;
  ASSERT_TRUE(stream.Next(&large) && stream.Next(&small));
  EXPECT_EQ(small.owner, nullptr);
  ASSERT_NE(large.owner, nullptr);
  EXPECT_EQ(large.wire.bytes, std::string(1 << 20, 'x'));
}

TEST_F(FieldStreamTest, FaultsAreSaid) {
  const std::string large = BytesField(1, std::string(300000, 'x'));
  for (const std::string& message : {large.substr(0, 200000), large + "\x0a\x05" "abc", large + "\x08", large + "\x0c", std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}) {
    const InputFile file = Write(message);
    FieldStream in_memory(message, nullptr), in_file(file);
    All(in_memory);
    All(in_file);
    EXPECT_EQ(in_memory.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(in_file.status().code(), absl::StatusCode::kDataLoss);
  }
}

TEST_F(FieldStreamTest, AFileCutShortIsDataLoss) {
  const InputFile file = Write(BytesField(1, std::string(1 << 20, 'x')) + BytesField(1, std::string(1 << 20, 'y')));
  FieldStream stream(file);
  StreamField field;
  ASSERT_TRUE(stream.Next(&field));
  ASSERT_EQ(truncate(path_.c_str(), 1 << 20), 0);
  EXPECT_FALSE(stream.Next(&field));
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace thalweg
