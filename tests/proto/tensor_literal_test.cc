// Decoding and encoding of tensor messages (semantics L12, robustness rule 24).
#include "thalweg/proto/tensor_literal.h"

#include <complex>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "thalweg/tensor.pb.h"

namespace thalweg {
namespace {

TensorProto Proto(const std::string& text) {
  TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

absl::StatusOr<TensorLiteralPtr> Decoded(const std::string& text) { return DecodeTensorProto(Proto(text)); }

// All elements of a plain literal, repeated ones expanded.
template <typename T>
std::vector<T> Elements(const TensorLiteral& literal) {
  EXPECT_EQ(literal.MaterialisedBytes(), static_cast<int64_t>(literal.shape.num_elements() * sizeof(T)));
  std::vector<T> values(literal.shape.num_elements());
  literal.CopyTo(values.data());
  return values;
}

template <typename T>
std::vector<T> DecodedElements(const std::string& text) {
  absl::StatusOr<TensorLiteralPtr> literal = Decoded(text);
  EXPECT_TRUE(literal.ok()) << literal.status();
  return literal.ok() ? Elements<T>(**literal) : std::vector<T>();
}

void ExpectRefused(const std::string& text) {
  EXPECT_EQ(Decoded(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
}

// The literal loads but has no value.
void ExpectFault(const std::string& text) {
  const absl::StatusOr<TensorLiteralPtr> literal = Decoded(text);
  ASSERT_TRUE(literal.ok()) << text << ": " << literal.status();
  EXPECT_FALSE((*literal)->fault.empty()) << text;
  EXPECT_FALSE((*literal)->ToInt64s().ok()) << text;
}

const char kShape3[] = " tensor_shape { dim { size: 3 } } ";

TEST(TensorLiteral, L12LastValueRepeats) {
  EXPECT_EQ(DecodedElements<float>(std::string("dtype: DT_FLOAT float_val: [1, 2]") + kShape3),
            (std::vector<float>{1, 2, 2}));
  EXPECT_EQ(DecodedElements<int64_t>("dtype: DT_INT64 int64_val: 7 tensor_shape { dim { size: 9 } }"),
            std::vector<int64_t>(9, 7));
  const auto literal = Decoded("dtype: DT_DOUBLE double_val: 1 tensor_shape { dim { size: 1000000000000 } }");
  ASSERT_TRUE(literal.ok());
  EXPECT_EQ((*literal)->content.size(), 8u) << "repeated values stay compact";
}

TEST(TensorLiteral, L12NoValuesMeanZeros) {
  EXPECT_EQ(DecodedElements<int32_t>(std::string("dtype: DT_INT32") + kShape3), (std::vector<int32_t>{0, 0, 0}));
  const auto strings = Decoded(std::string("dtype: DT_STRING") + kShape3);
  ASSERT_TRUE(strings.ok());
  EXPECT_TRUE((*strings)->strings.empty());
}

TEST(TensorLiteral, L12SurplusValuesAreIgnored) {
  EXPECT_EQ(DecodedElements<float>(std::string("dtype: DT_FLOAT float_val: [1, 2, 3, 4, 5]") + kShape3),
            (std::vector<float>{1, 2, 3}));
  const auto strings = Decoded(std::string("dtype: DT_STRING string_val: ['a', 'b', 'c', 'd']") + kShape3);
  ASSERT_TRUE(strings.ok());
  EXPECT_EQ((*strings)->strings, (std::vector<std::string>{"a", "b", "c"}));
}

TEST(TensorLiteral, L12ContentWinsOverValues) {
  EXPECT_EQ(DecodedElements<uint8_t>(std::string("dtype: DT_UINT8 tensor_content: 'xyz' int_val: [1, 2, 3]") + kShape3),
            (std::vector<uint8_t>{'x', 'y', 'z'}));
}

TEST(TensorLiteral, L12ContentOfTheWrongLengthIsAFault) {
  ExpectFault(std::string("dtype: DT_UINT8 tensor_content: 'xy'") + kShape3);
  ExpectFault(std::string("dtype: DT_UINT8 tensor_content: 'wxyz'") + kShape3);
  ExpectFault(std::string("dtype: DT_FLOAT tensor_content: 'xyz'") + kShape3);
}

TEST(TensorLiteral, L12UnknownRankReadsAsScalar) {
  EXPECT_EQ(DecodedElements<float>("dtype: DT_FLOAT float_val: [4, 5] tensor_shape { unknown_rank: true }"),
            std::vector<float>{4});
  EXPECT_EQ(DecodedElements<float>("dtype: DT_FLOAT float_val: 4"), std::vector<float>{4});
}

TEST(TensorLiteral, WithoutElementsValuesDoNotMatter) {
  const auto literal = Decoded("dtype: DT_FLOAT float_val: 1 tensor_content: 'x' tensor_shape { dim { size: 0 } }");
  ASSERT_TRUE(literal.ok()) << literal.status();
  EXPECT_TRUE((*literal)->content.empty());
}

TEST(TensorLiteral, EveryPlainTypeReadsItsField) {
  const auto with = [](const char* dtype, const char* field) {
    return std::string("dtype: ") + dtype + " " + field + " tensor_shape { dim { size: 2 } }";
  };
  EXPECT_EQ(DecodedElements<double>(with("DT_DOUBLE", "double_val: [1.5, 2]")), (std::vector<double>{1.5, 2}));
  for (const char* dtype : {"DT_INT32", "DT_QINT32"}) {
    EXPECT_EQ(DecodedElements<int32_t>(with(dtype, "int_val: [-1, 70000]")), (std::vector<int32_t>{-1, 70000}));
  }
  for (const char* dtype : {"DT_INT16", "DT_UINT16", "DT_QINT16", "DT_QUINT16"}) {
    EXPECT_EQ(DecodedElements<uint16_t>(with(dtype, "int_val: [-1, 65537]")), (std::vector<uint16_t>{65535, 1}));
  }
  for (const char* dtype : {"DT_INT8", "DT_UINT8", "DT_QINT8", "DT_QUINT8"}) {
    EXPECT_EQ(DecodedElements<uint8_t>(with(dtype, "int_val: [-1, 257]")), (std::vector<uint8_t>{255, 1}));
  }
  EXPECT_EQ(DecodedElements<int8_t>(with("DT_INT4", "int_val: [-3, 25]")), (std::vector<int8_t>{-3, -7}));
  EXPECT_EQ(DecodedElements<uint8_t>(with("DT_UINT4", "int_val: [-3, 25]")), (std::vector<uint8_t>{13, 9}));
  EXPECT_EQ(DecodedElements<int8_t>(with("DT_INT2", "int_val: [-2, 3]")), (std::vector<int8_t>{-2, -1}));
  EXPECT_EQ(DecodedElements<uint8_t>(with("DT_UINT2", "int_val: [-2, 3]")), (std::vector<uint8_t>{2, 3}));
  EXPECT_EQ(DecodedElements<int64_t>(with("DT_INT64", "int64_val: [-1, 9000000000]")),
            (std::vector<int64_t>{-1, 9000000000}));
  EXPECT_EQ(DecodedElements<uint32_t>(with("DT_UINT32", "uint32_val: [4294967295, 1]")),
            (std::vector<uint32_t>{4294967295u, 1}));
  EXPECT_EQ(DecodedElements<uint64_t>(with("DT_UINT64", "uint64_val: [18446744073709551615, 1]")),
            (std::vector<uint64_t>{~uint64_t{0}, 1}));
  EXPECT_EQ(DecodedElements<uint8_t>(with("DT_BOOL", "bool_val: [true, false]")), (std::vector<uint8_t>{1, 0}));
  for (const char* dtype : {"DT_HALF", "DT_BFLOAT16"}) {
    EXPECT_EQ(DecodedElements<uint16_t>(with(dtype, "half_val: [15360, 65536]")), (std::vector<uint16_t>{15360, 0}));
  }
  for (const char* dtype :
       {"DT_FLOAT8_E5M2", "DT_FLOAT8_E4M3FN", "DT_FLOAT8_E4M3FNUZ", "DT_FLOAT8_E4M3B11FNUZ", "DT_FLOAT8_E5M2FNUZ"}) {
    EXPECT_EQ(DecodedElements<uint8_t>(with(dtype, "float8_val: '\\x38'")), (std::vector<uint8_t>{0x38, 0x38}));
  }
  EXPECT_EQ(DecodedElements<std::complex<float>>(with("DT_COMPLEX64", "scomplex_val: [1, 2, 3, 4]")),
            (std::vector<std::complex<float>>{{1, 2}, {3, 4}}));
  EXPECT_EQ(DecodedElements<std::complex<double>>(with("DT_COMPLEX128", "dcomplex_val: [1, 2, 3]")),
            (std::vector<std::complex<double>>{{1, 2}, {1, 2}}))
      << "a real part alone does not count";
}

// Kernels may rely on what is in memory: a bool is 0 or 1, a narrow integer fills its byte.
TEST(TensorLiteral, BytesOfNarrowTypesAreMadeCanonical) {
  EXPECT_EQ(DecodedElements<int8_t>(std::string("dtype: DT_INT4 tensor_content: '\\x0f\\xff\\x17'") + kShape3),
            (std::vector<int8_t>{-1, -1, 7}));
  EXPECT_EQ(DecodedElements<uint8_t>(std::string("dtype: DT_UINT4 tensor_content: '\\x0f\\xff\\x17'") + kShape3),
            (std::vector<uint8_t>{15, 15, 7}));
}

TEST(TensorLiteral, BoolsAreZeroOrOne) {
  EXPECT_EQ(DecodedElements<uint8_t>(std::string("dtype: DT_BOOL tensor_content: '\\x00\\x01\\x01'") + kShape3),
            (std::vector<uint8_t>{0, 1, 1}));
  ExpectFault(std::string("dtype: DT_BOOL tensor_content: '\\x00\\x01\\x02'") + kShape3);
}

// TensorFlow writes the strings of large constants as lengths followed by characters.
TEST(TensorLiteral, StringsMayBePackedIntoContent) {
  const auto literal = Decoded(std::string("dtype: DT_STRING tensor_content: '\\x02\\x00\\x03abcde'") + kShape3);
  ASSERT_TRUE(literal.ok()) << literal.status();
  EXPECT_EQ((*literal)->strings, (std::vector<std::string>{"ab", "", "cde"}));
  const std::string text(300, 'x');
  const auto longer = Decoded("dtype: DT_STRING tensor_content: '\\xac\\x02" + text + "'");
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ((*longer)->strings, std::vector<std::string>{text});
}

TEST(TensorLiteral, PackedStringsThatDoNotAddUpAreRefused) {
  for (const char* content :
       {"\\x02", "\\x01\\x01\\x01ab", "\\x01\\x01\\x01abcd", "\\x00\\x00\\xff", "\\x00\\x00\\xff\\xff\\xff\\xff\\x7f",
        "\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x01", "\\x00\\x00\\xff\\xff\\xff\\xff\\x0f"}) {
    ExpectFault(absl::StrCat("dtype: DT_STRING tensor_content: '", content, "'", kShape3));
  }
  ExpectFault("dtype: DT_STRING tensor_content: 'abc' tensor_shape { dim { size: 4611686018427387 } }");
}

TEST(TensorLiteral, Rule24RefusesBadTypesAndShapes) {
  ExpectRefused("float_val: 1");
  ExpectRefused("dtype: DT_FLOAT_REF float_val: 1");
  ExpectRefused("dtype: DT_FLOAT float_val: 1 tensor_shape { dim { size: -1 } }");
  ExpectRefused("dtype: DT_FLOAT float_val: 1 tensor_shape { dim { size: 4611686018427387904 } dim { size: 4 } }");
  ExpectRefused("dtype: DT_FLOAT tensor_shape { dim { size: 0 } dim { size: 4611686018427387904 } dim { size: 4 } }");
  ExpectRefused("dtype: DT_DOUBLE tensor_shape { dim { size: 4611686018427387904 } }");
  TensorProto unknown = Proto("float_val: 1");
  unknown.set_dtype(static_cast<DataType>(77));
  EXPECT_EQ(DecodeTensorProto(unknown).status().code(), absl::StatusCode::kInvalidArgument);
  TensorProto deep = Proto("dtype: DT_FLOAT float_val: 1");
  for (int i = 0; i <= kMaxRank; ++i) deep.mutable_tensor_shape()->add_dim()->set_size(1);
  EXPECT_EQ(DecodeTensorProto(deep).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TensorLiteral, Rule24ObjectsHaveNoContents) {
  ExpectFault("dtype: DT_RESOURCE tensor_content: 'abc'");
  ExpectFault("dtype: DT_VARIANT variant_val { type_name: 'x' }");
  ExpectFault("dtype: DT_RESOURCE resource_handle_val { name: 'x' }");
  EXPECT_TRUE(Decoded("dtype: DT_VARIANT").ok());
  EXPECT_TRUE(Decoded("dtype: DT_RESOURCE").ok());
}

TEST(TensorLiteral, ExternalContentIsSharedNotCopied) {
  auto file = std::make_shared<std::string>("xxabcyy");
  const absl::string_view part = absl::string_view(*file).substr(2, 3);
  const TensorProto proto = Proto(std::string("dtype: DT_UINT8 int_val: 9") + kShape3);
  absl::StatusOr<TensorLiteralPtr> literal = DecodeTensorProto(proto, part, file);
  ASSERT_TRUE(literal.ok()) << literal.status();
  EXPECT_EQ((*literal)->content.data(), part.data());
  EXPECT_EQ(file.use_count(), 2) << "the literal keeps the bytes alive";
  literal->reset();
  EXPECT_EQ(file.use_count(), 1);
  literal = DecodeTensorProto(proto, absl::string_view(*file), file);
  ASSERT_TRUE(literal.ok()) << literal.status();
  EXPECT_FALSE((*literal)->fault.empty()) << "the length is checked there too";
  literal = DecodeTensorProto(proto, absl::string_view(), nullptr);
  ASSERT_TRUE(literal.ok());
  EXPECT_EQ(Elements<uint8_t>(**literal), (std::vector<uint8_t>{9, 9, 9}));
}

TEST(TensorLiteral, ContentOfTheMessageIsCopied) {
  auto proto = std::make_unique<TensorProto>(Proto(std::string("dtype: DT_UINT8 tensor_content: 'abc'") + kShape3));
  const auto literal = DecodeTensorProto(*proto);
  proto.reset();
  ASSERT_TRUE(literal.ok());
  EXPECT_EQ((*literal)->content, "abc");
}

TEST(TensorLiteral, ReadsIntegersOfAnyType) {
  const auto values = [](const std::string& text) { return (*Decoded(text))->ToInt64s(); };
  const std::string shape2 = " tensor_shape { dim { size: 2 } }";
  EXPECT_EQ(values("dtype: DT_INT8 int_val: [-1, 2]" + shape2).value(), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(values("dtype: DT_UINT8 int_val: [-1, 2]" + shape2).value(), (std::vector<int64_t>{255, 2}));
  EXPECT_EQ(values("dtype: DT_BOOL bool_val: [true]" + shape2).value(), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(values("dtype: DT_INT64" + shape2).value(), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(values("dtype: DT_UINT64 uint64_val: 18446744073709551615").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(values("dtype: DT_FLOAT float_val: 1").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(values("dtype: DT_INT32 int_val: 1 tensor_shape { dim { size: 1025 } }").status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Whatever decodes is encoded to a message that decodes to the same elements, and as compactly.
TEST(TensorLiteral, EncodingDecodesToTheSame) {
  const std::vector<std::string> cases = {"dtype: DT_FLOAT float_val: [1, 2]",
                                          "dtype: DT_DOUBLE double_val: [1, 2, 3]",
                                          "dtype: DT_INT32 int_val: [-5]",
                                          "dtype: DT_INT16 int_val: [-5]",
                                          "dtype: DT_UINT16 int_val: [65000]",
                                          "dtype: DT_INT8 int_val: [-5]",
                                          "dtype: DT_UINT8 int_val: [250]",
                                          "dtype: DT_INT4 int_val: [-5]",
                                          "dtype: DT_UINT4 int_val: [11]",
                                          "dtype: DT_INT64 int64_val: [-5]",
                                          "dtype: DT_UINT32 uint32_val: [4294967295]",
                                          "dtype: DT_UINT64 uint64_val: [18446744073709551615]",
                                          "dtype: DT_BOOL bool_val: [false, true]",
                                          "dtype: DT_HALF half_val: [15360]",
                                          "dtype: DT_BFLOAT16 half_val: [16256]",
                                          "dtype: DT_FLOAT8_E5M2 float8_val: '8'",
                                          "dtype: DT_COMPLEX64 scomplex_val: [1, 2]",
                                          "dtype: DT_COMPLEX128 dcomplex_val: [1, 2, 3, 4]",
                                          "dtype: DT_QINT8 int_val: [-5]",
                                          "dtype: DT_QUINT16 int_val: [65000]",
                                          "dtype: DT_QINT32 int_val: [-5]",
                                          "dtype: DT_STRING string_val: ['a', 'b\\000c']",
                                          "dtype: DT_FLOAT",
                                          "dtype: DT_VARIANT",
                                          "dtype: DT_INT32 tensor_content: '0123456789ab'"};
  for (const std::string& text : cases) {
    const auto first = Decoded(text + kShape3);
    ASSERT_TRUE(first.ok()) << text << first.status();
    TensorProto encoded;
    EncodeTensorProto(**first, &encoded);
    const auto second = DecodeTensorProto(encoded);
    ASSERT_TRUE(second.ok()) << text << second.status();
    EXPECT_EQ((*first)->dtype, (*second)->dtype) << text;
    EXPECT_EQ((*first)->shape, (*second)->shape) << text;
    EXPECT_EQ((*first)->content, (*second)->content) << text;
    EXPECT_EQ((*first)->strings, (*second)->strings) << text;
  }
}

}  // namespace
}  // namespace thalweg
