// Files of known and unknown size, and what is said about those that cannot be read.
#include "thalweg/graph/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

namespace thalweg {
namespace {

class InputFileTest : public ::testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  void Write(const std::string& content) { std::ofstream(path_, std::ios::binary) << content; }
  absl::StatusOr<FileContents> Read() const {
    const absl::StatusOr<InputFile> file = InputFile::Open(path_);
    if (!file.ok()) return file.status();
    return file->ReadAll();
  }

  const std::string path_ = ::testing::TempDir() + "input_file_test." + std::to_string(getpid());
};

TEST_F(InputFileTest, FilesAreReadWholeOrInPart) {
  std::string content;
  for (int i = 0; i < 200000; ++i) content.push_back(static_cast<char>(i * 7));
  for (const size_t size : {0, 1, 65536, 200000}) {
    Write(content.substr(0, size));
    const absl::StatusOr<FileContents> read = Read();
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->bytes, content.substr(0, size)) << size;
  }
  const absl::StatusOr<InputFile> file = InputFile::Open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->size(), 200000u);
  std::string part(1000, ' ');
  ASSERT_TRUE(file->ReadAt(199000, part.data(), part.size()).ok());
  EXPECT_EQ(part, content.substr(199000));
}

TEST_F(InputFileTest, PipesAreReadToTheirEnd) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const std::string content(300000, 'p');
  std::thread writer([&] { Write(content); });
  const absl::StatusOr<FileContents> read = Read();
  writer.join();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->bytes, content);
}

TEST_F(InputFileTest, AFileCutShortIsDataLossAndHarmlessAfterwards) {
  Write(std::string(1 << 20, 'x'));
  const absl::StatusOr<InputFile> file = InputFile::Open(path_);
  ASSERT_TRUE(file.ok());
  const absl::StatusOr<FileContents> whole = file->ReadAll();
  ASSERT_TRUE(whole.ok());
  ASSERT_EQ(truncate(path_.c_str(), 10), 0);
  EXPECT_EQ(whole->bytes, std::string(1 << 20, 'x'));
  EXPECT_EQ(file->ReadAll().status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(InputFileTest, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(InputFile::Open(::testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
  Write("x");
  ASSERT_EQ(truncate(path_.c_str(), off_t{1} << 42), 0);
  EXPECT_EQ(Read().status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace thalweg
