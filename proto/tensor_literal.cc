#include "thalweg/proto/tensor_literal.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tensor.pb.h"

namespace thalweg {
namespace {

constexpr std::align_val_t kContentAlignment{64};

struct OwnedBytes {
  char* data = nullptr;
  std::shared_ptr<const void> owner;
};

// Memory for the content of a literal, aligned so that tensors may share it. `bytes` never exceeds a small multiple of
// the size of the message that is decoded.
absl::StatusOr<OwnedBytes> AllocateContent(size_t bytes) {
  char* data = static_cast<char*>(::operator new(bytes, kContentAlignment, std::nothrow));
  if (data == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a constant of ", bytes, " bytes"));
  }
  return OwnedBytes{data, std::shared_ptr<const void>(
                              data, [](const void* p) { ::operator delete(const_cast<void*>(p), kContentAlignment); })};
}

absl::Status SetOwnedContent(absl::string_view bytes, TensorLiteral* literal) {
  THALWEG_ASSIGN_OR_RETURN(OwnedBytes copy, AllocateContent(bytes.size()));
  std::memcpy(copy.data, bytes.data(), bytes.size());
  literal->content = absl::string_view(copy.data, bytes.size());
  literal->owner = std::move(copy.owner);
  return absl::OkStatus();
}

// The byte that kernels find in memory for a narrow integer: extended to its whole byte, whatever the file has in the
// bits that do not count.
uint8_t CanonicalByte(DType dtype, uint8_t byte) {
  switch (dtype) {
    case DType::kInt4: return static_cast<uint8_t>(static_cast<int8_t>(byte << 4) >> 4);
    case DType::kInt2: return static_cast<uint8_t>(static_cast<int8_t>(byte << 6) >> 6);
    case DType::kUInt2: return byte & 3;
    default: return byte & 15;
  }
}

bool IsNarrow(DType dtype) {
  return dtype == DType::kInt4 || dtype == DType::kUInt4 || dtype == DType::kInt2 || dtype == DType::kUInt2 ||
         dtype == DType::kFloat4E2M1FN;
}

bool IsCanonical(DType dtype, absl::string_view content) {
  return std::all_of(content.begin(), content.end(), [dtype](char c) {
    return CanonicalByte(dtype, static_cast<uint8_t>(c)) == static_cast<uint8_t>(c);
  });
}

// Requires content that this literal owns alone, of a narrow type.
void MakeCanonical(TensorLiteral* literal) {
  char* bytes = const_cast<char*>(literal->content.data());
  for (size_t i = 0; i < literal->content.size(); ++i) {
    bytes[i] = static_cast<char>(CanonicalByte(literal->dtype, static_cast<uint8_t>(bytes[i])));
  }
}

// The number of values of `available` that a tensor of `elements` elements can use: surplus ones are ignored.
size_t UsedValues(size_t available, int64_t elements) {
  return static_cast<size_t>(std::min<uint64_t>(available, static_cast<uint64_t>(elements)));
}

// Stores the values of a repeated field as elements of storage type T. Narrowing keeps the low bits.
template <typename T, typename Field>
absl::Status StoreValues(const Field& field, TensorLiteral* literal) {
  const size_t count = UsedValues(field.size(), literal->shape.num_elements());
  if (count == 0) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(OwnedBytes bytes, AllocateContent(count * sizeof(T)));
  T* out = reinterpret_cast<T*>(bytes.data);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<T>(field.Get(static_cast<int>(i)));
  literal->content = absl::string_view(bytes.data, count * sizeof(T));
  literal->owner = std::move(bytes.owner);
  return absl::OkStatus();
}

// Real and imaginary parts in turn; a lone real part at the end is ignored.
template <typename T, typename Field>
absl::Status StoreComplexValues(const Field& field, TensorLiteral* literal) {
  const size_t count = UsedValues(field.size() / 2, literal->shape.num_elements());
  if (count == 0) return absl::OkStatus();
  return SetOwnedContent(absl::string_view(reinterpret_cast<const char*>(field.data()), count * 2 * sizeof(T)),
                         literal);
}

absl::Status StoreNarrowValues(const TensorProto& proto, TensorLiteral* literal) {
  THALWEG_RETURN_IF_ERROR(StoreValues<uint8_t>(proto.int_val(), literal));
  MakeCanonical(literal);
  return absl::OkStatus();
}

absl::Status StoreBytes(const std::string& bytes, TensorLiteral* literal) {
  const size_t count = UsedValues(bytes.size(), literal->shape.num_elements());
  return count == 0 ? absl::OkStatus() : SetOwnedContent(absl::string_view(bytes.data(), count), literal);
}

absl::Status StoreStrings(const TensorProto& proto, TensorLiteral* literal) {
  const size_t count = UsedValues(proto.string_val_size(), literal->shape.num_elements());
  literal->strings.assign(proto.string_val().begin(), proto.string_val().begin() + count);
  return absl::OkStatus();
}

// Elements that are objects: absent values are default objects; others have no meaning outside the process that wrote
// them.
absl::Status CheckNoObjects(const TensorProto& proto, DType dtype) {
  if (proto.resource_handle_val_size() == 0 && proto.variant_val_size() == 0) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("a constant of type ", DTypeName(dtype),
                                               " with contents cannot be loaded; only default elements can"));
}

absl::Status StoreTypedValues(const TensorProto& proto, TensorLiteral* literal) {
  switch (literal->dtype) {
    case DType::kFloat32: return StoreValues<float>(proto.float_val(), literal);
    case DType::kFloat64: return StoreValues<double>(proto.double_val(), literal);
    case DType::kInt32:
    case DType::kQInt32: return StoreValues<int32_t>(proto.int_val(), literal);
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kQInt16:
    case DType::kQUInt16: return StoreValues<uint16_t>(proto.int_val(), literal);
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kQInt8:
    case DType::kQUInt8: return StoreValues<uint8_t>(proto.int_val(), literal);
    case DType::kInt4:
    case DType::kUInt4:
    case DType::kInt2:
    case DType::kUInt2: return StoreNarrowValues(proto, literal);
    case DType::kInt64: return StoreValues<int64_t>(proto.int64_val(), literal);
    case DType::kUInt32: return StoreValues<uint32_t>(proto.uint32_val(), literal);
    case DType::kUInt64: return StoreValues<uint64_t>(proto.uint64_val(), literal);
    case DType::kBool: return StoreValues<bool>(proto.bool_val(), literal);
    case DType::kFloat16:
    case DType::kBFloat16: return StoreValues<uint16_t>(proto.half_val(), literal);
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E4M3B11FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat4E2M1FN: return StoreBytes(proto.float8_val(), literal);
    case DType::kComplex64: return StoreComplexValues<float>(proto.scomplex_val(), literal);
    case DType::kComplex128: return StoreComplexValues<double>(proto.dcomplex_val(), literal);
    case DType::kString: return StoreStrings(proto, literal);
    case DType::kResource:
    case DType::kVariant: return CheckNoObjects(proto, literal->dtype);
    case DType::kInvalid: break;
  }
  return absl::InternalError(absl::StrCat("no decoder for elements of type ", DTypeName(literal->dtype)));
}

absl::Status BadContent(const TensorLiteral& literal, absl::string_view content, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("tensor_content of a constant ", DTypeName(literal.dtype),
                                                 literal.shape.ToString(), " has ", content.size(), " bytes; ",
                                                 problem));
}

// Takes a number of at most 32 bits, seven bits in each byte, the lowest first, off the front of `bytes`.
bool TakeVarint32(absl::string_view* bytes, uint32_t* number) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      *number = static_cast<uint32_t>(value);
      return value <= std::numeric_limits<uint32_t>::max();
    }
  }
  return false;
}

// The length of each string, then the characters of all.
absl::Status StoreStringContent(absl::string_view content, TensorLiteral* literal) {
  const int64_t count = literal->shape.num_elements();
  if (static_cast<uint64_t>(count) > content.size())
    return BadContent(*literal, content, "too few for the lengths of the strings");
  std::vector<uint32_t> lengths(static_cast<size_t>(count));
  absl::string_view rest = content;
  uint64_t characters = 0;
  for (uint32_t& length : lengths) {
    if (!TakeVarint32(&rest, &length))
      return BadContent(*literal, content, "the lengths of the strings are cut off or too large");
    characters += length;
  }
  if (characters != rest.size()) {
    return BadContent(*literal, content, absl::StrCat("its strings have ", characters, " of the last ", rest.size()));
  }
  literal->strings.reserve(lengths.size());
  for (uint32_t length : lengths) {
    literal->strings.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return absl::OkStatus();
}

// Raw bytes of all elements. Shared with `owner` if there is one and the bytes can be used as they stand.
absl::Status StorePlainContent(absl::string_view content, std::shared_ptr<const void> owner, TensorLiteral* literal) {
  const int64_t wanted = literal->MaterialisedBytes();
  if (static_cast<uint64_t>(wanted) != content.size()) {
    return BadContent(*literal, content, absl::StrCat("its shape asks for ", wanted));
  }
  const auto is_bool = [](char c) { return c == 0 || c == 1; };
  if (literal->dtype == DType::kBool && !std::all_of(content.begin(), content.end(), is_bool)) {
    return BadContent(*literal, content, "one of them is neither 0 nor 1");
  }
  const bool canonical = !IsNarrow(literal->dtype) || IsCanonical(literal->dtype, content);
  if (owner != nullptr && canonical) {
    literal->content = content;
    literal->owner = std::move(owner);
    return absl::OkStatus();
  }
  THALWEG_RETURN_IF_ERROR(SetOwnedContent(content, literal));
  if (!canonical) MakeCanonical(literal);
  return absl::OkStatus();
}

absl::Status StoreContent(absl::string_view content, std::shared_ptr<const void> owner, TensorLiteral* literal) {
  if (IsPlainMemory(literal->dtype)) return StorePlainContent(content, std::move(owner), literal);
  if (literal->dtype == DType::kString) return StoreStringContent(content, literal);
  return BadContent(*literal, content, "this type has none");
}

absl::StatusOr<DType> DecodeDType(const TensorProto& proto) {
  const int number = static_cast<int>(proto.dtype());
  if (!IsValidDType(number) || number > kRefDTypeOffset) {
    return absl::InvalidArgumentError(absl::StrCat("a constant has element type number ", number, ", which is ",
                                                   IsValidDType(number) ? "a reference type" : "not known"));
  }
  return static_cast<DType>(number);
}

// A shape of unknown rank reads as that of a scalar (L12).
absl::StatusOr<Shape> DecodeShape(const TensorProto& proto, DType dtype) {
  const TensorShapeProto& source = proto.tensor_shape();
  if (source.unknown_rank()) return Shape();
  Dims dims;
  dims.reserve(std::min(source.dim_size(), kMaxRank + 1));
  for (const auto& dim : source.dim()) {
    if (dims.size() > kMaxRank) break;  // Make refuses the rank
    dims.push_back(dim.size());
  }
  THALWEG_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
  const int64_t element_size = std::max<int64_t>(DTypeSize(dtype), sizeof(std::string));
  int64_t bytes;
  if (!CheckedMul(shape.num_elements(), element_size, &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a constant ", DTypeName(dtype), shape.ToString(), " would take more than 2^63-1 bytes"));
  }
  return shape;
}

// Reads element `i` of `content`, whose element type T is an integer type.
template <typename T>
int64_t IntegerAt(absl::string_view content, int64_t i) {
  T value;
  std::memcpy(&value, content.data() + i * sizeof(T), sizeof(T));
  return static_cast<int64_t>(value);
}

using IntegerReader = int64_t (*)(absl::string_view, int64_t);

// Null for types that are not integers.
IntegerReader IntegerReaderOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt4:
    case DType::kUInt2:
    case DType::kUInt8: return IntegerAt<uint8_t>;
    case DType::kInt4:
    case DType::kInt2:
    case DType::kInt8: return IntegerAt<int8_t>;
    case DType::kInt16: return IntegerAt<int16_t>;
    case DType::kUInt16: return IntegerAt<uint16_t>;
    case DType::kInt32: return IntegerAt<int32_t>;
    case DType::kUInt32: return IntegerAt<uint32_t>;
    case DType::kInt64:
    case DType::kUInt64: return IntegerAt<int64_t>;
    default: return nullptr;
  }
}

// Appends the stored elements, of storage type T, to a repeated field.
template <typename T, typename Field>
void AppendValues(absl::string_view content, Field* field) {
  for (size_t offset = 0; offset < content.size(); offset += sizeof(T)) {
    T value;
    std::memcpy(&value, content.data() + offset, sizeof(T));
    field->Add(static_cast<typename Field::value_type>(value));
  }
}

// Writes fewer values than there are elements; only the typed fields can say so.
void EncodeTypedValues(const TensorLiteral& literal, TensorProto* proto) {
  const absl::string_view content = literal.content;
  switch (literal.dtype) {
    case DType::kFloat32: return AppendValues<float>(content, proto->mutable_float_val());
    case DType::kFloat64: return AppendValues<double>(content, proto->mutable_double_val());
    case DType::kInt32:
    case DType::kQInt32: return AppendValues<int32_t>(content, proto->mutable_int_val());
    case DType::kInt16:
    case DType::kQInt16: return AppendValues<int16_t>(content, proto->mutable_int_val());
    case DType::kUInt16:
    case DType::kQUInt16: return AppendValues<uint16_t>(content, proto->mutable_int_val());
    case DType::kInt8:
    case DType::kQInt8:
    case DType::kInt4:
    case DType::kInt2: return AppendValues<int8_t>(content, proto->mutable_int_val());
    case DType::kUInt8:
    case DType::kQUInt8:
    case DType::kUInt4:
    case DType::kUInt2: return AppendValues<uint8_t>(content, proto->mutable_int_val());
    case DType::kInt64: return AppendValues<int64_t>(content, proto->mutable_int64_val());
    case DType::kUInt32: return AppendValues<uint32_t>(content, proto->mutable_uint32_val());
    case DType::kUInt64: return AppendValues<uint64_t>(content, proto->mutable_uint64_val());
    case DType::kBool: return AppendValues<bool>(content, proto->mutable_bool_val());
    case DType::kFloat16:
    case DType::kBFloat16: return AppendValues<uint16_t>(content, proto->mutable_half_val());
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E4M3B11FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat4E2M1FN: proto->set_float8_val(content.data(), content.size()); return;
    case DType::kComplex64: return AppendValues<float>(content, proto->mutable_scomplex_val());
    case DType::kComplex128: return AppendValues<double>(content, proto->mutable_dcomplex_val());
    case DType::kString:
    case DType::kResource:
    case DType::kVariant:
    case DType::kInvalid: return;
  }
}

absl::StatusOr<TensorLiteralPtr> Decode(const TensorProto& proto, absl::string_view content,
                                        std::shared_ptr<const void> owner) {
  auto literal = std::make_shared<TensorLiteral>();
  THALWEG_ASSIGN_OR_RETURN(literal->dtype, DecodeDType(proto));
  THALWEG_ASSIGN_OR_RETURN(literal->shape, DecodeShape(proto, literal->dtype));
  if (literal->shape.num_elements() == 0) return TensorLiteralPtr(std::move(literal));
  const absl::Status status = content.empty() ? StoreTypedValues(proto, literal.get())
                                              : StoreContent(content, std::move(owner), literal.get());
  if (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) {
    literal->fault = std::string(status.message());
  } else {
    THALWEG_RETURN_IF_ERROR(status);
  }
  return TensorLiteralPtr(std::move(literal));
}

}  // namespace

int64_t TensorLiteral::MaterialisedBytes() const {
  const int64_t element_size = IsPlainMemory(dtype) ? DTypeSize(dtype) : sizeof(std::string);
  int64_t bytes;
  return CheckedMul(shape.num_elements(), element_size, &bytes) ? bytes : std::numeric_limits<int64_t>::max();
}

void TensorLiteral::CopyTo(void* out) const {
  const size_t element_size = DTypeSize(dtype);
  const size_t total = static_cast<size_t>(shape.num_elements()) * element_size;
  if (total == 0) return;
  char* bytes = static_cast<char*>(out);
  if (content.empty()) {
    std::memset(bytes, 0, total);
    return;
  }
  std::memcpy(bytes, content.data(), content.size());
  // Repeats the last element by doubling what has been written of it.
  size_t done = content.size();
  const char* repeated = bytes + done - element_size;
  while (done < total) {
    const size_t available = static_cast<size_t>(bytes + done - repeated);
    const size_t count = std::min(available, total - done);
    std::memcpy(bytes + done, repeated, count);
    done += count;
  }
}

absl::StatusOr<std::vector<int64_t>> TensorLiteral::ToInt64s(int64_t limit) const {
  if (!fault.empty()) return absl::InvalidArgumentError(fault);
  const IntegerReader read = IntegerReaderOf(dtype);
  if (read == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a constant of integers, got ", DTypeName(dtype), shape.ToString()));
  }
  const int64_t elements = shape.num_elements();
  if (elements > limit) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a constant of at most ", limit, " integers, got ", DTypeName(dtype), shape.ToString()));
  }
  std::vector<int64_t> values(static_cast<size_t>(elements), 0);
  const int64_t stored = static_cast<int64_t>(content.size() / DTypeSize(dtype));
  for (int64_t i = 0; i < elements && stored > 0; ++i) {
    values[i] = read(content, std::min(i, stored - 1));
    if (dtype == DType::kUInt64 && values[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the constant uint64 ", static_cast<uint64_t>(values[i]), " exceeds 2^63-1"));
    }
  }
  return values;
}

absl::StatusOr<TensorLiteralPtr> DecodeTensorProto(const TensorProto& proto) {
  return Decode(proto, proto.tensor_content(), nullptr);
}

absl::StatusOr<TensorLiteralPtr> DecodeTensorProto(const TensorProto& proto, absl::string_view external_content,
                                                   std::shared_ptr<const void> owner) {
  return Decode(proto, external_content.empty() ? absl::string_view(proto.tensor_content()) : external_content,
                external_content.empty() ? nullptr : std::move(owner));
}

void EncodeTensorProto(const TensorLiteral& literal, TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(static_cast<DataType>(literal.dtype));
  TensorShapeProto* shape = proto->mutable_tensor_shape();
  for (int64_t dim : literal.shape.dims()) shape->add_dim()->set_size(dim);
  for (const std::string& s : literal.strings) proto->add_string_val(s);
  if (literal.content.empty()) return;
  if (static_cast<int64_t>(literal.content.size()) == literal.MaterialisedBytes()) {
    proto->set_tensor_content(literal.content.data(), literal.content.size());
  } else {
    EncodeTypedValues(literal, proto);
  }
}

}  // namespace thalweg
