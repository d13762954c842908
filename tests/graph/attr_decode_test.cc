// Attribute values: message -> Attr -> message.
#include "thalweg/graph/attr_decode.h"

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "thalweg/attr_value.pb.h"

namespace thalweg {
namespace {

AttrValue Message(const std::string& text) {
  AttrValue message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(AttrDecode, EveryKindSurvivesTheRoundTrip) {
  for (const char* text :
       {"",
        "s: 'text\\000\\377'",
        "i: -9223372036854775808",
        "f: 1.5",
        "b: true",
        "type: DT_HALF",
        "shape { }",
        "shape { unknown_rank: true }",
        "shape { dim { size: 2 } dim { size: -1 } }",
        "placeholder: 'T'",
        "list { }",
        "list { s: 'a' s: '' }",
        "list { i: [1, -2] }",
        "list { f: [0.5, -0.0] }",
        "list { b: [true, false] }",
        "list { type: [DT_FLOAT, DT_RESOURCE] }",
        "list { shape { dim { size: 1 } } shape { unknown_rank: true } }",
        "func { name: 'f' attr { key: 'T' value { type: DT_INT32 } } attr { key: 'g' value { func { name: 'g' } } } }",
        "list { func { name: 'f' } func { name: 'g' attr { key: 'n' value { i: 3 } } } }",
        "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } tensor_content: "
        "'\\001\\000\\000\\000\\002\\000\\000\\000' }",
        "tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: 'a' string_val: 'bc' }",
        "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 5 } } float_val: 7 }",
        "list { tensor { dtype: DT_BOOL tensor_shape { } tensor_content: '\\001' } }"}) {
    const AttrValue message = Message(text);
    const absl::StatusOr<Attr> attr = DecodeAttr(message);
    ASSERT_TRUE(attr.ok()) << text << attr.status();
    AttrValue again;
    EncodeAttr(*attr, &again);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(message, again)) << text << "\n"
                                                                                    << again.DebugString();

    const absl::StatusOr<Attr> from_bytes = DecodeAttrBytes(message.SerializeAsString(), nullptr, 100);
    ASSERT_TRUE(from_bytes.ok()) << text;
    EXPECT_TRUE(AttrEquals(*attr, *from_bytes)) << text;
  }
}

TEST(AttrDecode, RefusesWhatCannotBe) {
  AttrValue unknown_type;
  unknown_type.set_type(static_cast<DataType>(250));
  EXPECT_FALSE(DecodeAttr(unknown_type).ok());
  for (const char* text : {"type: DT_INVALID", "list { type: [DT_FLOAT, DT_INVALID] }", "shape { dim { size: -2 } }",
                           "shape { unknown_rank: true dim { size: 1 } }", "list { i: 1 f: 2 }", "tensor { }",
                           "func { name: 'f' attr { key: 'T' value { type: DT_INVALID } } }"}) {
    EXPECT_EQ(DecodeAttr(Message(text)).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(DecodeAttrBytes("\x42\x05", nullptr, 100).status().code(), absl::StatusCode::kDataLoss);
}

TEST(AttrDecode, OnlyLargeContentsAreReferenced) {
  for (const int size : {16, 8192}) {
    AttrValue message =
        Message("tensor { dtype: DT_UINT8 tensor_shape { dim { size: " + std::to_string(size) + " } } }");
    message.mutable_tensor()->set_tensor_content(std::string(size, 'v'));
    const auto bytes = std::make_shared<std::string>(message.SerializeAsString());
    const absl::StatusOr<Attr> attr = DecodeAttrBytes(*bytes, bytes, 100);
    ASSERT_TRUE(attr.ok()) << attr.status();
    const TensorLiteral& literal = *std::get<TensorLiteralPtr>(*attr);
    EXPECT_EQ(literal.content, std::string(size, 'v'));
    const bool referenced =
        literal.content.data() >= bytes->data() && literal.content.data() < bytes->data() + bytes->size();
    EXPECT_EQ(referenced, size == 8192);
  }
}

TEST(AttrDecode, PackedFloatsAreReferencedWhereTheyStand) {
  AttrValue message = Message("tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2000 } } }");
  for (int i = 0; i < 2000; ++i) message.mutable_tensor()->add_float_val(static_cast<float>(i));
  auto bytes = std::make_shared<std::string>(message.SerializeAsString());
  absl::StatusOr<Attr> attr = DecodeAttrBytes(*bytes, bytes, 100);
  ASSERT_TRUE(attr.ok()) << attr.status();
  EXPECT_TRUE(AttrEquals(*attr, *DecodeAttr(message)));
  const char* const content = std::get<TensorLiteralPtr>(*attr)->content.data();
  EXPECT_TRUE(content >= bytes->data() && content < bytes->data() + bytes->size());

  // Fewer or more values than elements, or values in several pieces, take the ordinary way.
  for (const int elements : {1500, 2500}) {
    message.mutable_tensor()->mutable_tensor_shape()->mutable_dim(0)->set_size(elements);
    bytes = std::make_shared<std::string>(message.SerializeAsString());
    attr = DecodeAttrBytes(*bytes, bytes, 100);
    ASSERT_TRUE(attr.ok()) << attr.status();
    EXPECT_TRUE(AttrEquals(*attr, *DecodeAttr(message))) << elements;
  }
  AttrValue pieces = Message("tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2000 } } float_val: [7, 8, 9] }");
  TensorProto more;
  for (int i = 0; i < 2000; ++i) more.add_float_val(static_cast<float>(i));
  const std::string tensor = pieces.tensor().SerializeAsString() + more.SerializeAsString();
  AttrValue joined;
  ASSERT_TRUE(joined.mutable_tensor()->ParseFromString(tensor));
  std::string attr_bytes(1, '\x42');
  for (size_t rest = tensor.size();; rest >>= 7) {
    attr_bytes.push_back(static_cast<char>(rest > 127 ? (rest & 127) | 128 : rest));
    if (rest <= 127) break;
  }
  bytes = std::make_shared<std::string>(attr_bytes + tensor);
  attr = DecodeAttrBytes(*bytes, bytes, 100);
  ASSERT_TRUE(attr.ok()) << attr.status();
  EXPECT_TRUE(AttrEquals(*attr, *DecodeAttr(joined)));
}

}  // namespace
}  // namespace thalweg
