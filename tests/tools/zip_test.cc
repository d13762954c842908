// Zip archives: round trips, deflated entries as NumPy's savez_compressed writes them, and archives that lie.
#include "thalweg/tools/zip.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace thalweg::tools {
namespace {

class ZipTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/thalweg_zip_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    unlink(path().c_str());
    rmdir(folder_.c_str());
  }
  std::string path() const { return folder_ + "/a.npz"; }

  // An archive with the entries "one" and "two".
  std::string Written() {
    absl::StatusOr<std::unique_ptr<ZipWriter>> writer = ZipWriter::Create(path());
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE((*writer)->Add("one", {"first ", "content"}).ok());
    EXPECT_TRUE((*writer)->Add("two", {""}).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    std::ifstream file(path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  std::string folder_;
};

// Little-endian; bytes beyond the eighth are zero.
void Put(std::string* out, uint64_t value, int width) {
  for (int i = 0; i < width; ++i, value >>= 8) out->push_back(static_cast<char>(value & 0xFF));
}

std::string Deflated(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Lie {
  uint16_t method = 8;
  uint16_t flags = 0;
  uint32_t crc = 0;  // xor
  int64_t size = 0;  // added to the true size
};

// An archive of one entry "x" with deflated content, perhaps lying about it.
std::string OneEntry(const std::string& content, Lie lie = {}) {
  const std::string data = lie.method == 8 ? Deflated(content) : content;
  const uint32_t crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()),
                                                   static_cast<uInt>(content.size()))) ^
                       lie.crc;
  const uint64_t size = content.size() + static_cast<uint64_t>(lie.size);
  const auto common = [&](std::string* out) {
    Put(out, 20, 2);
    Put(out, lie.flags, 2);
    Put(out, lie.method, 2);
    Put(out, 0, 4);
    Put(out, crc, 4);
    Put(out, data.size(), 4);
    Put(out, size, 4);
    Put(out, 1, 2);
    Put(out, 0, 2);
  };
  std::string zip;
  Put(&zip, 0x04034b50, 4);
  common(&zip);
  zip += "x" + data;
  const size_t directory = zip.size();
  Put(&zip, 0x02014b50, 4);
  Put(&zip, 20, 2);
  common(&zip);
  Put(&zip, 0, 10);
  Put(&zip, 0, 4);
  zip += "x";
  const size_t end = zip.size();
  Put(&zip, 0x06054b50, 4);
  Put(&zip, 0, 4);
  Put(&zip, 1, 2);
  Put(&zip, 1, 2);
  Put(&zip, end - directory, 4);
  Put(&zip, directory, 4);
  Put(&zip, 0, 2);
  return zip;
}

absl::StatusOr<std::string> ReadX(const std::string& zip) {
  const absl::StatusOr<ZipReader> reader = ZipReader::Open({zip, nullptr}, "a.npz");
  if (!reader.ok()) return reader.status();
  const absl::StatusOr<FileContents> content = reader->Read("x");
  if (!content.ok()) return content.status();
  return std::string(content->bytes);
}

TEST_F(ZipTest, ReadsWhatItWrites) {
  const std::string zip = Written();
  const absl::StatusOr<ZipReader> reader = ZipReader::Open({zip, nullptr}, "a.npz");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->names(), (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(reader->Read("one")->bytes, "first content");
  EXPECT_EQ(reader->Read("two")->bytes, "");
  EXPECT_EQ(reader->Read("three").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ZipTest, LeavesNothingBehindWithoutFinish) {
  {
    absl::StatusOr<std::unique_ptr<ZipWriter>> writer = ZipWriter::Create(path());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Add("one", {"x"}).ok());
  }
  EXPECT_NE(access(path().c_str(), F_OK), 0);
  EXPECT_EQ(rmdir(folder_.c_str()), 0) << "something is left in the folder";
}

TEST_F(ZipTest, InflatesDeflatedEntries) {
  const std::string content(100000, 'a');
  const absl::StatusOr<std::string> read = ReadX(OneEntry(content));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, content);
  EXPECT_EQ(*ReadX(OneEntry("")), "");
}

TEST_F(ZipTest, FindsTheEndBehindAComment) {
  std::string zip = OneEntry("content");
  zip[zip.size() - 2] = 5;
  zip += "hello";
  EXPECT_EQ(*ReadX(zip), "content");
}

TEST_F(ZipTest, RefusesEntriesThatLie) {
  EXPECT_EQ(ReadX(OneEntry("content", {.size = 1})).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadX(OneEntry("content", {.size = -1})).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadX(OneEntry("content", {.size = 4000000000})).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadX(OneEntry("content", {.method = 0, .size = 1})).status().code(), absl::StatusCode::kDataLoss);
  const absl::Status crc = ReadX(OneEntry("content", {.crc = 1})).status();
  EXPECT_EQ(crc.code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(absl::StrContains(crc.message(), "checksum")) << crc;
}

TEST_F(ZipTest, NamesWhatItDoesNotSupport) {
  const absl::Status encrypted = ReadX(OneEntry("content", {.flags = 1})).status();
  EXPECT_EQ(encrypted.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(encrypted.message(), "encrypted")) << encrypted;
  EXPECT_EQ(ReadX(OneEntry("content", {.method = 12})).status().code(), absl::StatusCode::kUnimplemented);
}

TEST_F(ZipTest, RefusesWhatIsNoArchive) {
  EXPECT_EQ(ZipReader::Open({"", nullptr}, "a").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ZipReader::Open({"hello world", nullptr}, "a").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ZipTest, SurvivesEveryTruncationAndManyChangedBytes) {
  const std::string zip = OneEntry(std::string(1000, 'b'));
  for (size_t n = 0; n < zip.size(); ++n) EXPECT_FALSE(ReadX(zip.substr(0, n)).ok()) << n;
  for (size_t i = 0; i < zip.size(); ++i) {
    for (int change : {1, 0x10, 0x80, 0xFF}) {
      std::string changed = zip;
      changed[i] = static_cast<char>(changed[i] ^ change);
      (void)ReadX(changed);  // any answer, no crash (sanitizers watch)
    }
  }
}

TEST_F(ZipTest, RefusesADirectoryOfTooManyEntries) {
  std::string zip = OneEntry("content");
  const size_t end = zip.size() - 22;
  zip[end + 8] = zip[end + 10] = '\xFF';
  EXPECT_EQ(ReadX(zip).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace thalweg::tools
