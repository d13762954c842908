#include "thalweg/graph/attr_decode.h"

#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "thalweg/attr_value.pb.h"
#include "thalweg/graph/nesting.h"
#include "thalweg/graph/wire_reader.h"

namespace thalweg {
namespace {

// Smaller contents are copied: a view would keep a whole file in memory for a few bytes.
constexpr size_t kReferenceContentFrom = 4096;
constexpr uint32_t kTensorFieldOfAttr = 8;
constexpr uint32_t kDTypeFieldOfTensor = 1;
constexpr uint32_t kContentFieldOfTensor = 4;

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

absl::StatusOr<DType> DecodeType(int number) {
  if (number == 0) return absl::InvalidArgumentError("the element type is DT_INVALID (0)");
  if (!IsValidDType(number))
    return absl::InvalidArgumentError(absl::StrCat("there is no element type of number ", number));
  return static_cast<DType>(number);
}

absl::StatusOr<PartialShape> DecodeShape(const TensorShapeProto& message) {
  if (message.unknown_rank()) {
    if (message.dim_size() > 0)
      return absl::InvalidArgumentError("the shape has dimensions although its rank is said to be unknown");
    return PartialShape();
  }
  Dims dims;
  for (const auto& dim : message.dim()) {
    if (static_cast<int>(dims.size()) > kMaxRank) break;  // Make refuses it; no need to copy the rest
    dims.push_back(dim.size());
  }
  return PartialShape::Make(dims);
}

absl::StatusOr<FunctionRef> DecodeFunction(const NameAttrList& message) {
  auto attrs = std::make_shared<AttrMap>();
  attrs->Reserve(message.attr_size());
  // In order of names, so that filling the sorted map takes linear time.
  std::map<absl::string_view, const AttrValue*> sorted;
  for (const auto& [name, value] : message.attr()) sorted.emplace(name, &value);
  for (const auto& [name, value] : sorted) {
    absl::StatusOr<Attr> attr = DecodeAttr(*value);
    if (!attr.ok()) {
      return absl::Status(attr.status().code(), absl::StrCat("attribute '", name, "' of function '", message.name(),
                                                             "': ", attr.status().message()));
    }
    attrs->Set(name, *std::move(attr));
  }
  return FunctionRef{message.name(), std::move(attrs)};
}

// Decodes all elements of a repeated field into a list attribute.
template <typename T, typename Field, typename Decode>
absl::StatusOr<Attr> DecodeElements(const Field& field, Decode decode) {
  std::vector<T> values;
  values.reserve(field.size());
  for (const auto& element : field) {
    absl::StatusOr<T> value = decode(element);
    if (!value.ok()) {
      return absl::Status(value.status().code(),
                          absl::StrCat("element ", values.size(), ": ", value.status().message()));
    }
    values.push_back(*std::move(value));
  }
  return MakeListAttr(std::move(values));
}

template <typename T, typename Field>
Attr CopyElements(const Field& field) {
  return MakeListAttr(std::vector<T>(field.begin(), field.end()));
}

absl::StatusOr<Attr> DecodeList(const AttrValue::ListValue& list) {
  const int kinds = (list.s_size() > 0) + (list.i_size() > 0) + (list.f_size() > 0) + (list.b_size() > 0) +
                    (list.type_size() > 0) + (list.shape_size() > 0) + (list.tensor_size() > 0) +
                    (list.func_size() > 0);
  if (kinds > 1) return absl::InvalidArgumentError("the list mixes elements of several kinds");
  if (list.s_size() > 0) return CopyElements<std::string>(list.s());
  if (list.i_size() > 0) return CopyElements<int64_t>(list.i());
  if (list.f_size() > 0) return CopyElements<float>(list.f());
  if (list.b_size() > 0) return CopyElements<bool>(list.b());
  if (list.type_size() > 0) return DecodeElements<DType>(list.type(), DecodeType);
  if (list.shape_size() > 0) return DecodeElements<PartialShape>(list.shape(), DecodeShape);
  if (list.tensor_size() > 0) {
    return DecodeElements<TensorLiteralPtr>(list.tensor(), [](const TensorProto& t) { return DecodeTensorProto(t); });
  }
  if (list.func_size() > 0) return DecodeElements<FunctionRef>(list.func(), DecodeFunction);
  return Attr(std::make_shared<const AttrList>());
}

bool ParseBounded(absl::string_view bytes, int max_nesting, google::protobuf::MessageLite* message) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) return false;
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  input.SetRecursionLimit(max_nesting);
  return message->ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

absl::Status NotAnAttr(absl::string_view bytes, int max_nesting) {
  if (NestsDeeperThan(bytes, NestedMessage::kAttrValue, max_nesting)) {
    return absl::InvalidArgumentError(absl::StrCat("the value is nested deeper than ", max_nesting, " levels"));
  }
  return absl::DataLossError(absl::StrCat("corrupt value: its ", bytes.size(), " bytes are not an attribute value"));
}

// The field of TensorProto whose packed values are, byte for byte, what tensor_content would be; 0 if there is none.
uint32_t PackedFieldOf(uint64_t dtype) {
  switch (static_cast<DType>(dtype)) {
    case DType::kFloat32: return 5;
    case DType::kFloat64: return 6;
    case DType::kComplex64: return 9;
    case DType::kComplex128: return 12;
    default: return 0;
  }
}

// A serialized tensor taken apart: its elements where they stand, and all other fields.
struct SplitTensor {
  std::string other_fields;
  absl::string_view content;
};

// Splits a serialized AttrValue that holds just one tensor. False if it is anything else, or if its content is small.
bool Split(absl::string_view attr, SplitTensor* out) {
  WireReader attr_reader(attr);
  WireField tensor, more;
  if (!attr_reader.Next(&tensor) || !tensor.Is(kTensorFieldOfAttr, WireType::kBytes) || attr_reader.Next(&more))
    return false;
  if (!attr_reader.status().ok()) return false;

  WireReader reader(tensor.bytes);
  absl::string_view content;
  WireField largest;
  uint64_t dtype = 0;
  for (WireField field; reader.Next(&field);) {
    if (field.Is(kDTypeFieldOfTensor, WireType::kVarint)) dtype = field.value;
    if (field.Is(kContentFieldOfTensor, WireType::kBytes)) content = field.bytes;
    if (field.type != WireType::kBytes) continue;
    if (field.number == largest.number) largest.bytes = absl::string_view();  // in several pieces: not one content
    else if (field.bytes.size() >= largest.bytes.size()) largest = field;
  }
  if (!reader.status().ok()) return false;
  uint32_t content_field = kContentFieldOfTensor;
  if (content.empty() && largest.number != 0 && largest.number == PackedFieldOf(dtype)) {
    content_field = largest.number;
    content = largest.bytes;
  }
  if (content.size() < kReferenceContentFrom) return false;
  out->content = content;
  WireReader again(tensor.bytes);
  for (WireField field; again.Next(&field);) {
    if (!field.Is(content_field, WireType::kBytes))
      out->other_fields.append(field.encoded.data(), field.encoded.size());
  }
  return true;
}

}  // namespace

absl::StatusOr<Attr> DecodeAttr(const AttrValue& message) {
  switch (message.value_case()) {
    case AttrValue::kList: return DecodeList(message.list());
    case AttrValue::kS: return Attr(message.s());
    case AttrValue::kI: return Attr(static_cast<int64_t>(message.i()));
    case AttrValue::kF: return Attr(message.f());
    case AttrValue::kB: return Attr(message.b());
    case AttrValue::kType: {
      THALWEG_ASSIGN_OR_RETURN(const DType type, DecodeType(message.type()));
      return Attr(type);
    }
    case AttrValue::kShape: {
      THALWEG_ASSIGN_OR_RETURN(PartialShape shape, DecodeShape(message.shape()));
      return MakeShapeAttr(std::move(shape));
    }
    case AttrValue::kTensor: {
      THALWEG_ASSIGN_OR_RETURN(TensorLiteralPtr tensor, DecodeTensorProto(message.tensor()));
      return Attr(std::move(tensor));
    }
    case AttrValue::kPlaceholder: return Attr(AttrPlaceholder{message.placeholder()});
    case AttrValue::kFunc: {
      THALWEG_ASSIGN_OR_RETURN(FunctionRef function, DecodeFunction(message.func()));
      return Attr(std::make_shared<const FunctionRef>(std::move(function)));
    }
    case AttrValue::VALUE_NOT_SET: break;
  }
  return Attr();
}

absl::StatusOr<Attr> DecodeAttrBytes(absl::string_view bytes, const std::shared_ptr<const void>& owner,
                                     int max_nesting) {
  SplitTensor split;
  if (owner != nullptr && bytes.size() >= kReferenceContentFrom && Split(bytes, &split)) {
    TensorProto tensor;
    if (!ParseBounded(split.other_fields, max_nesting, &tensor)) return NotAnAttr(bytes, max_nesting);
    absl::StatusOr<TensorLiteralPtr> literal = DecodeTensorProto(tensor, split.content, owner);
    // What does not fit (values that repeat, or one value given in several pieces) is read the ordinary way below.
    if (literal.ok() && (*literal)->fault.empty()) return Attr(*std::move(literal));
  }
  AttrValue message;
  if (!ParseBounded(bytes, max_nesting, &message)) return NotAnAttr(bytes, max_nesting);
  return DecodeAttr(message);
}

namespace {

void EncodeShape(const PartialShape& shape, TensorShapeProto* message) {
  if (!shape.has_rank()) {
    message->set_unknown_rank(true);
    return;
  }
  for (const int64_t dim : shape.dims()) message->add_dim()->set_size(IsKnownDim(dim) ? dim : kUnknownDim);
}

void EncodeFunction(const FunctionRef& function, NameAttrList* message) {
  message->set_name(function.name);
  for (const auto& [name, attr] : *function.attrs) EncodeAttr(attr, &(*message->mutable_attr())[std::string(name)]);
}

void EncodeList(const AttrList& list, AttrValue::ListValue* message) {
  std::visit(Overloaded{[](std::monostate) {},
                        [&](const std::vector<std::string>& v) {
                          for (const auto& s : v) message->add_s(s);
                        },
                        [&](const std::vector<int64_t>& v) { message->mutable_i()->Add(v.begin(), v.end()); },
                        [&](const std::vector<float>& v) { message->mutable_f()->Add(v.begin(), v.end()); },
                        [&](const std::vector<bool>& v) {
                          for (const bool b : v) message->add_b(b);
                        },
                        [&](const std::vector<DType>& v) {
                          for (const DType t : v) message->add_type(static_cast<DataType>(t));
                        },
                        [&](const std::vector<PartialShape>& v) {
                          for (const auto& s : v) EncodeShape(s, message->add_shape());
                        },
                        [&](const std::vector<TensorLiteralPtr>& v) {
                          for (const auto& t : v) EncodeTensorProto(*t, message->add_tensor());
                        },
                        [&](const std::vector<FunctionRef>& v) {
                          for (const auto& f : v) EncodeFunction(f, message->add_func());
                        }},
             list.values);
}

}  // namespace

void EncodeAttr(const Attr& attr, AttrValue* message) {
  std::visit(
      Overloaded{
          [](std::monostate) {}, [&](const std::string& s) { message->set_s(s); },
          [&](int64_t i) { message->set_i(i); }, [&](float f) { message->set_f(f); },
          [&](bool b) { message->set_b(b); }, [&](DType type) { message->set_type(static_cast<DataType>(type)); },
          [&](const std::shared_ptr<const PartialShape>& shape) { EncodeShape(*shape, message->mutable_shape()); },
          [&](const TensorLiteralPtr& tensor) { EncodeTensorProto(*tensor, message->mutable_tensor()); },
          [&](const std::shared_ptr<const FunctionRef>& function) {
            EncodeFunction(*function, message->mutable_func());
          },
          [&](const std::shared_ptr<const AttrList>& list) { EncodeList(*list, message->mutable_list()); },
          [&](const AttrPlaceholder& placeholder) { message->set_placeholder(placeholder.name); }},
      attr);
}

}  // namespace thalweg
