// Files that are no graphs are called by their names.
#include "thalweg/graph/file_kind.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace thalweg {
namespace {

using ::testing::HasSubstr;

void ExpectOther(const std::string& bytes, const std::string& word) {
  const SniffedFile file = SniffFile(bytes);
  EXPECT_EQ(file.kind, FileKind::kOther) << word;
  EXPECT_THAT(file.description, HasSubstr(word));
}

TEST(FileKind, KnownKinds) {
  ExpectOther("\x1f\x8b\x08rest", "gzip");
  ExpectOther("PK\x03\x04rest", "zip");
  ExpectOther("\xff\xd8\xff\xe0rest", "JPEG");
  ExpectOther("\x89PNG\r\n\x1a\nrest", "PNG");
  ExpectOther("\x89HDF\r\n\x1a\nrest", "HDF5");
  ExpectOther(std::string("\x1c\0\0\0TFL3", 8), "TFLite");
  ExpectOther("version https://git-lfs.github.com/spec/v1\noid", "LFS");
  ExpectOther("../.git/annex/objects/aa/bb", "annex");
  ExpectOther("\n<!DOCTYPE html><html>", "HTML");
  ExpectOther(std::string("\xff\xfen\0o\0", 6), "UTF-16");
  ExpectOther("anything\x57\xfb\x80\x8b\x24\x75\x47\xdb", "checkpoint");
  ExpectOther(std::string("\x08\x07\x12\x07pytorch", 11), "ONNX");
  ExpectOther(std::string("\x08\x01\x12\x02\x0a\x00", 6), "SavedModel");
  ExpectOther("{\"format\": \"layers-model\"}", "JSON");
  ExpectOther(std::string("\x0a\x08\x2a\x06" "1.15.0\x12\x02\x22\x00", 14), "MetaGraphDef");
}

TEST(FileKind, TextAndBinaryGraphs) {
  EXPECT_EQ(SniffFile("node { name: 'a' op: 'NoOp' }\r\n\t").kind, FileKind::kTextGraph);
  EXPECT_EQ(SniffFile("\xef\xbb\xbf# \xc3\xa4 comment\n").kind, FileKind::kTextGraph);
  EXPECT_EQ(SniffFile("some prose").kind, FileKind::kTextGraph);
  EXPECT_EQ(SniffFile(std::string("\x0a\x09\x0a\x01" "a\x12\x04NoOp", 11)).kind, FileKind::kBinaryGraph);
  EXPECT_EQ(SniffFile(std::string("\x22\x02\x08\x1b", 4)).kind, FileKind::kBinaryGraph);
}

}  // namespace
}  // namespace thalweg
