// .npy arrays: what NumPy writes is read, what is broken or hostile is refused with the reason, and both ways round.
#include "thalweg/tools/npy.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace thalweg::tools {
namespace {

using std::string_literals::operator""s;

// A version 1 file with this header text and data.
std::string File(const std::string& header, const std::string& data) {
  std::string padded = header;
  padded.append(63 - (10 + padded.size()) % 64, ' ');
  padded += '\n';
  std::string file = "\x93NUMPY\x01"s + '\0';
  file += static_cast<char>(padded.size() & 0xFF);
  file += static_cast<char>(padded.size() >> 8);
  return file + padded + data;
}

std::string Header(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': ", order, ", 'shape': ", shape, ", }");
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

absl::StatusOr<Tensor> Read(const std::string& file, DType wanted = DType::kInvalid) {
  const absl::StatusOr<NpyArray> array = ParseNpy(file, nullptr, "x.npy");
  if (!array.ok()) return array.status();
  return TensorFromNpy(*array, wanted);
}

void ExpectRefused(const std::string& file, absl::StatusCode code, const std::string& words) {
  const absl::StatusOr<NpyArray> array = ParseNpy(file, nullptr, "x.npy");
  ASSERT_FALSE(array.ok()) << words;
  EXPECT_EQ(array.status().code(), code) << array.status();
  EXPECT_TRUE(absl::StrContains(array.status().message(), words)) << array.status() << " lacks: " << words;
  EXPECT_TRUE(absl::StrContains(array.status().message(), "x.npy")) << array.status();
}

TEST(NpyTest, ReadsAMatrix) {
  const absl::StatusOr<Tensor> t = Read(File(Header("<f4", "(2, 3)"), Bytes<float>({1, 2, 3, 4, 5, 6})));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->dtype(), DType::kFloat32);
  EXPECT_EQ(t->shape(), Shape::Of({2, 3}));
  EXPECT_EQ(t->flat<float>()[5], 6);
}

TEST(NpyTest, ReadsScalarsAndEmptyArrays) {
  const absl::StatusOr<Tensor> scalar = Read(File(Header("<i8", "()"), Bytes<int64_t>({-7})));
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_EQ(*scalar->scalar<int64_t>(), -7);
  const absl::StatusOr<Tensor> empty = Read(File(Header("<f8", "(0, 5)"), ""));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->shape(), Shape::Of({0, 5}));
}

TEST(NpyTest, PutsFortranOrderInRowMajorOrder) {
  // a[i][j] = 10 i + j, columns first.
  const absl::StatusOr<Tensor> t = Read(File(Header("<i4", "(2, 3)", "True"), Bytes<int32_t>({0, 10, 1, 11, 2, 12})));
  ASSERT_TRUE(t.ok()) << t.status();
  const std::vector<int32_t> values(t->flat<int32_t>().begin(), t->flat<int32_t>().end());
  EXPECT_EQ(values, (std::vector<int32_t>{0, 1, 2, 10, 11, 12}));
}

TEST(NpyTest, PutsThreeDimensionsOfFortranOrderInRowMajorOrder) {
  std::vector<int32_t> stored(24);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) stored[i + 2 * j + 6 * k] = 100 * i + 10 * j + k;
    }
  }
  const absl::StatusOr<Tensor> t = Read(File(Header("<i4", "(2, 3, 4)", "True"), Bytes(stored)));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(t->flat<int32_t>()[0], 0);
  EXPECT_EQ(t->flat<int32_t>()[1], 1);
  EXPECT_EQ(t->flat<int32_t>()[4], 10);
  EXPECT_EQ(t->flat<int32_t>()[23], 123);
}

TEST(NpyTest, DropsTrailingZerosOfStringsAndReadsUnicode) {
  const absl::StatusOr<Tensor> bytes = Read(File(Header("|S3", "(3,)"), "ab\0xyz\0\0\0"s));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->flat<std::string>()[0], "ab");
  EXPECT_EQ(bytes->flat<std::string>()[1], "xyz");
  EXPECT_EQ(bytes->flat<std::string>()[2], "");
  const absl::StatusOr<Tensor> text = Read(File(Header("<U2", "(2,)"), Bytes<uint32_t>({0xE9, 0, 0x1F600, 0x61})));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->flat<std::string>()[0], "\xC3\xA9");
  EXPECT_EQ(text->flat<std::string>()[1],
            "\xF0\x9F\x98\x80"
            "a");
  EXPECT_FALSE(Read(File(Header("<U1", "(1,)"), Bytes<uint32_t>({0x110000}))).ok());
  EXPECT_FALSE(Read(File(Header("<U1", "(1,)"), Bytes<uint32_t>({0xD800}))).ok());
}

TEST(NpyTest, TakesTypesWithoutAPlainFormAsTheirBits) {
  const std::string u2 = File(Header("<u2", "(1,)"), Bytes<uint16_t>({0x3FC0}));
  const absl::StatusOr<Tensor> bf16 = Read(u2, DType::kBFloat16);
  ASSERT_TRUE(bf16.ok()) << bf16.status();
  EXPECT_EQ(static_cast<float>(bf16->flat<bfloat16>()[0]), 1.5f);
  EXPECT_EQ(Read(u2)->dtype(), DType::kUInt16);
  EXPECT_TRUE(Read(u2, DType::kQUInt16).ok());
  EXPECT_TRUE(Read(File(Header("|V2", "(1,)"), "ab"), DType::kBFloat16).ok());
  EXPECT_TRUE(Read(File(Header("|V1", "(1,)"), "a"), DType::kFloat8E4M3FN).ok());
  EXPECT_TRUE(Read(File(Header("|u1", "(1,)"), "a"), DType::kFloat8E5M2).ok());
  EXPECT_TRUE(Read(File(Header("|i1", "(1,)"), "a"), DType::kQInt8).ok());
  EXPECT_TRUE(Read(File(Header("<i4", "(1,)"), "abcd"), DType::kQInt32).ok());
}

TEST(NpyTest, RefusesOtherTypesThanTheGraphWants) {
  const absl::Status status = Read(File(Header("<f8", "(1,)"), Bytes<double>({1})), DType::kFloat32).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "float64[1]")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "float32")) << status;
  EXPECT_FALSE(Read(File(Header("<i2", "(1,)"), "ab"), DType::kBFloat16).ok());
  EXPECT_FALSE(Read(File(Header("|V2", "(1,)"), "ab")).ok());
  EXPECT_FALSE(Read(File(Header("|V1", "(1,)"), "a"), DType::kQInt8).ok());
}

TEST(NpyTest, ChecksTheRangeOfFourBitIntegers) {
  EXPECT_TRUE(Read(File(Header("|i1", "(2,)"), "\x07\xF8"s), DType::kInt4).ok());
  EXPECT_FALSE(Read(File(Header("|i1", "(1,)"), "\x08"s), DType::kInt4).ok());
  EXPECT_TRUE(Read(File(Header("|u1", "(1,)"), "\x0F"s), DType::kUInt4).ok());
  EXPECT_FALSE(Read(File(Header("|u1", "(1,)"), "\x10"s), DType::kUInt4).ok());
}

TEST(NpyTest, MakesBytesOtherThanZeroTrue) {
  const absl::StatusOr<Tensor> t = Read(File(Header("|b1", "(2,)"), "\x02\0"s));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(static_cast<const uint8_t*>(t->raw())[0], 1);
  EXPECT_EQ(static_cast<const uint8_t*>(t->raw())[1], 0);
}

TEST(NpyTest, RefusesWhatIsNoArray) {
  ExpectRefused("", absl::StatusCode::kDataLoss, "NUMPY");
  ExpectRefused("hello world", absl::StatusCode::kDataLoss, "NUMPY");
  ExpectRefused("\x93NUMPY"s, absl::StatusCode::kDataLoss, "header");
  ExpectRefused("\x93NUMPY\x09\0\x10\0"s, absl::StatusCode::kDataLoss, "version 9");
  ExpectRefused("\x93NUMPY\x01\0\xFF\xFF{"s, absl::StatusCode::kDataLoss, "header");
  ExpectRefused("\x93NUMPY\x02\0\xFF\xFF\xFF\xFF{"s, absl::StatusCode::kDataLoss, "header of");
  ExpectRefused(File("[1, 2]", ""), absl::StatusCode::kDataLoss, "dictionary");
  ExpectRefused(File("{'descr': '<f4'}", ""), absl::StatusCode::kDataLoss, "incomplete");
  ExpectRefused(File("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + x", "abcd"),
                absl::StatusCode::kDataLoss, "incomplete");
  ExpectRefused(File(Header("<f4", "(1, -2)"), ""), absl::StatusCode::kDataLoss, "shape");
  ExpectRefused(File(Header("<f4", "1"), ""), absl::StatusCode::kDataLoss, "shape");
  ExpectRefused(File(Header("<q4", "(1,)"), "abcd"), absl::StatusCode::kUnimplemented, "<q4");
  ExpectRefused(File(Header("<f3", "(1,)"), "abc"), absl::StatusCode::kUnimplemented, "<f3");
}

TEST(NpyTest, RefusesBigEndianStructuredAndObjectArrays) {
  ExpectRefused(File(Header(">f4", "(1,)"), "abcd"), absl::StatusCode::kUnimplemented, "big-endian");
  ExpectRefused(File(Header(">U1", "(1,)"), "abcd"), absl::StatusCode::kUnimplemented, "big-endian");
  EXPECT_TRUE(Read(File(Header(">i1", "(1,)"), "a")).ok()) << "one byte has no order";
  ExpectRefused(File(Header("|O", "(1,)"), "abcdefgh"), absl::StatusCode::kUnimplemented, "objects");
  ExpectRefused(File("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd"),
                absl::StatusCode::kUnimplemented, "structured");
}

TEST(NpyTest, RefusesLengthsThatDoNotFitTheShape) {
  ExpectRefused(File(Header("<f4", "(2,)"), "abcd"), absl::StatusCode::kDataLoss, "8 bytes");
  ExpectRefused(File(Header("<f4", "(1,)"), "abcdefgh"), absl::StatusCode::kDataLoss, "4 bytes");
  ExpectRefused(File(Header("<f4", "(4611686018427387904, 4)"), ""), absl::StatusCode::kDataLoss, "");
  ExpectRefused(File(Header("<f8", "(4611686018427387904,)"), ""), absl::StatusCode::kDataLoss, "overflow");
  ExpectRefused(File(Header("<f4", "(99999999999999999999,)"), ""), absl::StatusCode::kDataLoss, "shape");
  ExpectRefused(File(Header("|S0", "(4611686018427387904,)"), ""), absl::StatusCode::kDataLoss, "too many");
  ExpectRefused(File(Header("|S99999999999999999999", "(1,)"), ""), absl::StatusCode::kDataLoss, "element type");
}

TEST(NpyTest, SurvivesEveryTruncationAndManyChangedBytes) {
  const std::string good = File(Header("<f4", "(2, 3)"), Bytes<float>({1, 2, 3, 4, 5, 6}));
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(ParseNpy(good.substr(0, n), nullptr, "x.npy").ok()) << n;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int change : {1, 0x20, 0x80, 0xFF}) {
      std::string changed = good;
      changed[i] = static_cast<char>(changed[i] ^ change);
      (void)Read(changed);  // any answer, no crash (sanitizers watch)
    }
  }
}

template <typename T>
void ExpectRoundTrip(const std::vector<T>& values, const std::string& descr) {
  const absl::StatusOr<Tensor> t = Tensor::Of<T>(values, Shape::Of({1, static_cast<int64_t>(values.size())}));
  ASSERT_TRUE(t.ok());
  const absl::StatusOr<std::unique_ptr<NpyFile>> file = NpyFromTensor(*t);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string text = absl::StrCat((*file)->header, (*file)->data);
  EXPECT_TRUE(absl::StrContains(text, absl::StrCat("'", descr, "'"))) << text.substr(0, 80);
  EXPECT_EQ((*file)->header.size() % 64, 0u);
  const absl::StatusOr<Tensor> back = Read(text, t->dtype());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->shape(), t->shape());
  if constexpr (std::is_same_v<T, std::string>) EXPECT_EQ(back->flat<T>(), t->flat<T>());
  else EXPECT_EQ(std::memcmp(back->raw(), t->raw(), values.size() * sizeof(T)), 0);
}

TEST(NpyTest, WritesWhatItReads) {
  ExpectRoundTrip<float>({1.5f, -2}, "<f4");
  ExpectRoundTrip<double>({1.5, -2}, "<f8");
  ExpectRoundTrip<half>({half(1.5f)}, "<f2");
  ExpectRoundTrip<bfloat16>({bfloat16(1.5f)}, "<u2");
  ExpectRoundTrip<int8_t>({-1}, "|i1");
  ExpectRoundTrip<uint8_t>({255}, "|u1");
  ExpectRoundTrip<int16_t>({-300}, "<i2");
  ExpectRoundTrip<uint16_t>({65535}, "<u2");
  ExpectRoundTrip<int32_t>({-70000}, "<i4");
  ExpectRoundTrip<uint32_t>({4000000000u}, "<u4");
  ExpectRoundTrip<int64_t>({INT64_MIN}, "<i8");
  ExpectRoundTrip<uint64_t>({UINT64_MAX}, "<u8");
  ExpectRoundTrip<std::complex<float>>({{1, 2}}, "<c8");
  ExpectRoundTrip<std::complex<double>>({{1, 2}}, "<c16");
  ExpectRoundTrip<qint8>({qint8(-3)}, "|i1");
  ExpectRoundTrip<quint8>({quint8(3)}, "|u1");
  ExpectRoundTrip<qint32>({qint32(-3)}, "<i4");
  ExpectRoundTrip<int4>({int4(-8), int4(7)}, "|i1");
  ExpectRoundTrip<float8_e5m2>({float8_e5m2(1.5f)}, "|u1");
  ExpectRoundTrip<std::string>({"a", "", "long\0er"s}, "|S7");
}

TEST(NpyTest, WritesNoHandles) {
  const absl::StatusOr<Tensor> handle = Tensor::Allocate(DType::kResource, Shape());
  ASSERT_TRUE(handle.ok());
  EXPECT_EQ(NpyFromTensor(*handle).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace thalweg::tools
