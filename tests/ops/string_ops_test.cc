// Kernels on text: the rules that are easy to get wrong, and inputs that must be refused. TensorFlow's values are in the
// conformance cases.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "thalweg/ops/strings/utf8.h"
#include "thalweg/tests/ops/numeric_helpers.h"
#include "thalweg/tests/support/op_runner.h"

namespace thalweg {
namespace {

using testing::OpRunner;
using testing::Values;
using Strings = std::vector<std::string>;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

TEST(StringJoin, ScalarsStandForRepeatedElements) {
  OpRunner op("StringJoin");
  op.Input<std::string>({"a", "b"}, {2}).Scalar<std::string>("-").With("separator", "+");
  EXPECT_EQ(Values<std::string>(op.RunOne()), (Strings{"a+-", "b+-"}));
  op.ClearInputs().Input<std::string>({"a", "b"}, {2}).Input<std::string>({"c"}, {1});
  EXPECT_EQ(op.Run().status().code(), kInvalid);
}

TEST(ReduceJoin, TheFirstListedDimensionRunsFastest) {
  OpRunner op("ReduceJoin");
  op.Input<std::string>({"a", "b", "c", "d"}, {2, 2}).Input<int32_t>({0, 1}, {2});
  EXPECT_EQ(Values<std::string>(op.RunOne()), Strings{"acbd"});
  op.ClearInputs().Input<std::string>({"a", "b", "c", "d"}, {2, 2}).Input<int32_t>({-1, 0}, {2});
  EXPECT_EQ(Values<std::string>(op.RunOne()), Strings{"abcd"});
  op.ClearInputs().Input<std::string>({"a"}, {1}).Input<int32_t>({0, -1}, {2});
  EXPECT_EQ(op.Run().status().code(), kInvalid);
}

TEST(StringSplit, EmptyTextHasNoParts) {
  OpRunner op("StringSplit");
  op.Input<std::string>({"", "a,,b"}, {2}).Scalar<std::string>(",").With("skip_empty", false);
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values<std::string>((*out)[1]), (Strings{"a", "", "b"}));
  EXPECT_EQ(Values<int64_t>((*out)[2]), (std::vector<int64_t>{2, 3}));
}

TEST(StringSplitV2, AnEmptySeparatorIsWhiteSpace) {
  OpRunner op("StringSplitV2");
  op.Input<std::string>({"  a  b c "}, {1}).Scalar<std::string>("").With("maxsplit", 1);
  const absl::StatusOr<std::vector<Tensor>> out = op.Run();
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(Values<std::string>((*out)[1]), (Strings{"a", "b c"}));
}

TEST(Substr, CountsCharactersFromEitherEnd) {
  const std::string text = "a\xc3\xa4\xe6\x97\xa5z";  // a, a with dots, a Han character, z
  for (const auto& [pos, length, expected] : std::vector<std::tuple<int32_t, int32_t, std::string>>{
           {1, 1, "\xc3\xa4"}, {-2, 9, "\xe6\x97\xa5z"}, {4, 1, ""}, {-4, 2, "a\xc3\xa4"}}) {
    OpRunner op("Substr");
    op.Scalar(text).Scalar(pos).Scalar(length).With("unit", "UTF8_CHAR");
    EXPECT_EQ(Values<std::string>(op.RunOne()), Strings{expected}) << pos;
  }
  for (const int32_t pos : {5, -5, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
    OpRunner op("Substr");
    op.Scalar(text).Scalar(pos).Scalar<int32_t>(1).With("unit", "UTF8_CHAR");
    EXPECT_EQ(op.Run().status().code(), kInvalid) << pos;
  }
}

TEST(StaticRegexFullMatch, RefusesWhatIsNoPattern) {
  OpRunner op("StaticRegexFullMatch");
  op.Input<std::string>({"ab", "b"}, {2}).With("pattern", "a.*");
  EXPECT_EQ(Values<bool>(op.RunOne()), (std::vector<bool>{true, false}));
  op.With("pattern", "a(");
  EXPECT_EQ(op.Run().status().code(), kInvalid);
}

TEST(AsString, RefusesFormatsThatFillMemory) {
  OpRunner op("AsString");
  op.Scalar(1.5f).With("width", 8).With("fill", "0").With("precision", 2);
  EXPECT_EQ(Values<std::string>(op.RunOne()), Strings{"00001.50"});
  op.With("width", std::numeric_limits<int32_t>::max());
  EXPECT_EQ(op.Run().status().code(), kInvalid);
}

TEST(Base64, GoesRoundAndRefusesOtherCharacters) {
  OpRunner encode("EncodeBase64");
  encode.Input<std::string>({"", "\xff\xfe", "abc"}, {3}).With("pad", true);
  const absl::StatusOr<Tensor> encoded = encode.RunOne();
  EXPECT_EQ(Values<std::string>(encoded), (Strings{"", "__4=", "YWJj"}));
  OpRunner decode("DecodeBase64");
  decode.Input(*encoded);
  EXPECT_EQ(Values<std::string>(decode.RunOne()), (Strings{"", "\xff\xfe", "abc"}));
  for (const char* bad : {"a", "ab+d", "a=bc", "YWJj="}) {
    OpRunner op("DecodeBase64");
    op.Scalar<std::string>(bad);
    EXPECT_EQ(op.Run().status().code(), kInvalid) << bad;
  }
}

TEST(DecodeRaw, SwapsEachPartOfAComplexNumber) {
  OpRunner op("DecodeRaw");
  op.Input<std::string>({std::string("\x3f\x80\0\0\x40\0\0\0", 8)}, {1}).With("out_type", DType::kComplex64).With("little_endian", false);
  EXPECT_EQ(Values<std::complex<float>>(op.RunOne()), (std::vector<std::complex<float>>{{1.0f, 2.0f}}));
}

TEST(Utf8, MalformedBytesAreSingleCharacters) {
  for (const char* text : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\x97"}) {
    EXPECT_EQ(strings::DecodeCharacter(text, 0).code, -1) << text;
  }
  for (const int32_t code : {0x24, 0xa2, 0x20ac, 0x10348, 0x10ffff}) {
    std::string text;
    strings::AppendCharacter(code, &text);
    const strings::DecodedCharacter decoded = strings::DecodeCharacter(text, 0);
    EXPECT_EQ(decoded.code, code);
    EXPECT_EQ(decoded.bytes, text.size());
  }
}

}  // namespace
}  // namespace thalweg
