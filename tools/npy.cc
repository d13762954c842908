#include "thalweg/tools/npy.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg::tools {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeaderBytes = 1 << 20;
constexpr int64_t kMaxFixedWidthBytes = int64_t{1} << 36;

// A reader of the header's small Python dictionary. Every method skips white space first.
class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : text_(text) {}

  bool Take(char c) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool AtEnd() {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    return text_.empty();
  }
  char Peek() {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    return text_.empty() ? '\0' : text_[0];
  }
  bool QuotedString(std::string* out) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return false;
    const size_t end = text_.find(quote, 1);
    if (end == absl::string_view::npos) return false;
    *out = std::string(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return true;
  }
  bool Bool(bool* out) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    *out = absl::ConsumePrefix(&text_, "True");
    return *out || absl::ConsumePrefix(&text_, "False");
  }
  // "(2, 3)", "(2,)", "()"; the L of Python 2's long integers is skipped.
  bool Tuple(std::vector<int64_t>* out) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      text_ = absl::StripLeadingAsciiWhitespace(text_);
      size_t digits = 0;
      while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) ++digits;
      int64_t value = 0;
      if (digits == 0 || !absl::SimpleAtoi(text_.substr(0, digits), &value)) return false;
      out->push_back(value);
      text_.remove_prefix(digits);
      Take('L');
      if (!Take(',') && Peek() != ')') return false;
    }
    return true;
  }

 private:
  absl::string_view text_;
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

absl::Status Bad(absl::string_view label, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(label, ": not a .npy array: ", what));
}

absl::StatusOr<Header> ParseHeader(absl::string_view text, absl::string_view label) {
  HeaderReader reader(text);
  Header header;
  bool have_descr = false, have_order = false, have_shape = false;
  if (!reader.Take('{')) return Bad(label, "its header is not a dictionary");
  while (!reader.Take('}')) {
    std::string key;
    if (!reader.QuotedString(&key) || !reader.Take(':')) return Bad(label, "its header has a malformed key");
    bool understood = false;
    if (key == "descr") {
      if (reader.Peek() == '[') {
        return absl::UnimplementedError(
            absl::StrCat(label, ": structured arrays are not supported; save one array per field"));
      }
      understood = have_descr = reader.QuotedString(&header.descr);
    } else if (key == "fortran_order") {
      understood = have_order = reader.Bool(&header.fortran_order);
    } else if (key == "shape") {
      understood = reader.Tuple(&header.shape) && !std::exchange(have_shape, true);
    }
    if (!understood) return Bad(label, absl::StrCat("its header has an entry '", key, "' that makes no sense"));
    if (!reader.Take(',') && reader.Peek() != '}') return Bad(label, "its header is malformed");
  }
  if (!reader.AtEnd() || !have_descr || !have_order || !have_shape) return Bad(label, "its header is incomplete");
  return header;
}

bool IsKnownSize(char kind, int64_t bytes) {
  switch (kind) {
    case 'b': return bytes == 1;
    case 'i':
    case 'u': return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'f': return bytes == 2 || bytes == 4 || bytes == 8;
    case 'c': return bytes == 8 || bytes == 16;
    case 'V': return bytes == 1 || bytes == 2;
    default: return false;
  }
}

// "<f4" into kind and size.
absl::Status ParseDescr(absl::string_view descr, absl::string_view label, NpyArray* array) {
  const absl::string_view whole = descr;
  if (descr == "?") descr = "|b1";
  char order = '|';
  if (!descr.empty() && absl::StrContains("<>=|", descr[0])) {
    order = descr[0];
    descr.remove_prefix(1);
  }
  const char kind = descr.empty() ? '\0' : descr[0];
  if (kind == 'O')
    return absl::UnimplementedError(
        absl::StrCat(label, ": arrays of Python objects are not supported; save strings as |S"));
  int64_t size = 0;
  if (kind == '\0' || !absl::SimpleAtoi(descr.substr(1), &size) || size < 0) {
    return Bad(label, absl::StrCat("unknown element type '", whole, "'"));
  }
  const bool is_text = kind == 'S' || kind == 'a' || kind == 'U';
  if (order == '>' && (kind == 'U' || (!is_text && size > 1))) {
    return absl::UnimplementedError(absl::StrCat(label, ": big-endian array '", whole,
                                                 "'; in Python, convert it with a.astype(a.dtype.newbyteorder('<'))"));
  }
  if (!is_text && !IsKnownSize(kind, size)) {
    return absl::UnimplementedError(absl::StrCat(label, ": element type '", whole, "' is not supported"));
  }
  array->kind = kind == 'a' ? 'S' : kind;
  if (kind == 'U' && !CheckedMul(size, 4, &size)) return Bad(label, absl::StrCat("element type '", whole, "'"));
  array->item_bytes = size;
  return absl::OkStatus();
}

// Appends a code point as UTF-8; false if there is no such character.
bool AppendUtf8(uint32_t c, std::string* out) {
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return false;
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
    return true;
  }
  const int extra = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static constexpr unsigned char kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out->push_back(static_cast<char>(kLead[extra] | (c >> (6 * extra))));
  for (int i = extra - 1; i >= 0; --i) out->push_back(static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F)));
  return true;
}

absl::StatusOr<std::string> StringOf(const NpyArray& array, const char* item) {
  if (array.kind == 'S') {
    size_t length = static_cast<size_t>(array.item_bytes);
    while (length > 0 && item[length - 1] == '\0') --length;
    return std::string(item, length);
  }
  const size_t count = static_cast<size_t>(array.item_bytes) / 4;
  std::vector<uint32_t> points(count);
  if (count > 0) std::memcpy(points.data(), item, count * 4);
  while (!points.empty() && points.back() == 0) points.pop_back();
  std::string text;
  for (uint32_t c : points) {
    if (!AppendUtf8(c, &text)) return absl::InvalidArgumentError("a <U array holds a number that is no character");
  }
  return text;
}

// Calls fn(row-major index, index in the file) for every element.
template <typename Fn>
void ForEachElement(const NpyArray& array, Fn fn) {
  const int64_t n = array.shape.num_elements();
  if (!array.fortran_order || array.shape.rank() < 2) {
    for (int64_t i = 0; i < n; ++i) fn(i, i);
    return;
  }
  const int rank = array.shape.rank();
  std::vector<int64_t> index(rank, 0), stride(rank, 1);
  for (int d = 1; d < rank; ++d) stride[d] = stride[d - 1] * array.shape.dim(d - 1);
  int64_t position = 0;
  for (int64_t i = 0; i < n; ++i) {
    fn(i, position);
    for (int d = rank - 1; d >= 0; --d) {
      position += stride[d];
      if (++index[d] < array.shape.dim(d)) break;
      position -= stride[d] * array.shape.dim(d);
      index[d] = 0;
    }
  }
}

// The integer or raw array type whose elements are the bits of a `t`; kind 0 if t has none.
struct Carrier {
  char kind;
  int bytes;
};
Carrier CarrierOf(DType t) {
  switch (t) {
    case DType::kBFloat16:
    case DType::kQUInt16: return {'u', 2};
    case DType::kQInt16: return {'i', 2};
    case DType::kQInt32: return {'i', 4};
    case DType::kQInt8:
    case DType::kInt4:
    case DType::kInt2: return {'i', 1};
    case DType::kQUInt8:
    case DType::kUInt4:
    case DType::kUInt2:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E4M3B11FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat4E2M1FN: return {'u', 1};
    default: return {0, 0};
  }
}

bool IsCarriedBy(DType wanted, const NpyArray& array) {
  const Carrier carrier = CarrierOf(wanted);
  if (carrier.kind == 0 || array.item_bytes != carrier.bytes) return false;
  return array.kind == carrier.kind || (array.kind == 'V' && IsFloating(wanted));
}

// The values an integer of few bits can have; true for all other types.
bool FitsNarrowInteger(DType t, int value) {
  switch (t) {
    case DType::kInt4: return value >= -8 && value <= 7;
    case DType::kUInt4: return value >= 0 && value <= 15;
    case DType::kInt2: return value >= -2 && value <= 1;
    case DType::kUInt2: return value >= 0 && value <= 3;
    default: return true;
  }
}

absl::Status CheckNarrowIntegers(const Tensor& tensor) {
  const DType t = tensor.dtype();
  if (FitsNarrowInteger(t, 127) && FitsNarrowInteger(t, -128)) return absl::OkStatus();
  const bool is_signed = t == DType::kInt4 || t == DType::kInt2;
  const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const int value = is_signed ? static_cast<int8_t>(bytes[i]) : bytes[i];
    if (!FitsNarrowInteger(t, value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("element ", i, " is ", value, ", out of the range of ", DTypeName(t)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> StringTensor(const NpyArray& array) {
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(DType::kString, array.shape));
  absl::Span<std::string> out = tensor.mutable_flat<std::string>();
  absl::Status status;
  ForEachElement(array, [&](int64_t i, int64_t position) {
    if (!status.ok()) return;
    absl::StatusOr<std::string> text = StringOf(array, array.data.data() + position * array.item_bytes);
    if (text.ok()) out[i] = *std::move(text);
    else status = text.status();
  });
  if (!status.ok()) return status;
  return tensor;
}

absl::StatusOr<Tensor> PlainTensor(const NpyArray& array, DType dtype) {
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, array.shape));
  char* out = static_cast<char*>(tensor.mutable_raw());
  const size_t size = static_cast<size_t>(array.item_bytes);
  if (!array.fortran_order || array.shape.rank() < 2) {
    if (!array.data.empty()) std::memcpy(out, array.data.data(), array.data.size());
  } else {
    ForEachElement(array, [&](int64_t i, int64_t position) {
      std::memcpy(out + i * size, array.data.data() + position * size, size);
    });
  }
  if (dtype == DType::kBool) {  // only 0 and 1 are values of a bool
    for (int64_t i = 0; i < tensor.num_elements(); ++i) out[i] = out[i] != 0;
  }
  THALWEG_RETURN_IF_ERROR(CheckNarrowIntegers(tensor));
  return tensor;
}

const char* DescrOf(DType t) {
  switch (t) {
    case DType::kFloat32: return "<f4";
    case DType::kFloat64: return "<f8";
    case DType::kFloat16: return "<f2";
    case DType::kComplex64: return "<c8";
    case DType::kComplex128: return "<c16";
    case DType::kBool: return "|b1";
    case DType::kInt8: return "|i1";
    case DType::kUInt8: return "|u1";
    case DType::kInt16: return "<i2";
    case DType::kUInt16: return "<u2";
    case DType::kInt32: return "<i4";
    case DType::kUInt32: return "<u4";
    case DType::kInt64: return "<i8";
    case DType::kUInt64: return "<u8";
    default: break;
  }
  const Carrier carrier = CarrierOf(t);
  if (carrier.kind == 0) return nullptr;
  if (carrier.bytes == 1) return carrier.kind == 'i' ? "|i1" : "|u1";
  if (carrier.bytes == 2) return carrier.kind == 'i' ? "<i2" : "<u2";
  return "<i4";
}

std::string HeaderOf(absl::string_view descr, const Shape& shape) {
  const std::string dims = absl::StrCat(absl::StrJoin(shape.dims(), ", "), shape.rank() == 1 ? "," : "");
  std::string dict = absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", dims, "), }");
  // Magic, version, length and text together take a multiple of 64 bytes, so that the data is aligned.
  const size_t wide = dict.size() + 1 + 12 > 65535 ? 4 : 2;
  const size_t before = 8 + wide;
  dict.append(63 - (before + dict.size()) % 64, ' ');
  dict.push_back('\n');
  std::string header(kMagic);
  header.push_back(wide == 4 ? 2 : 1);
  header.push_back(0);
  for (size_t i = 0; i < wide; ++i) header.push_back(static_cast<char>(dict.size() >> (8 * i) & 0xFF));
  return header + dict;
}

absl::StatusOr<std::unique_ptr<NpyFile>> NpyFromStrings(const Tensor& tensor) {
  const absl::Span<const std::string> values = tensor.flat<std::string>();
  size_t width = 1;
  for (const std::string& value : values) width = std::max(width, value.size());
  int64_t total = 0;
  if (!CheckedMul(static_cast<int64_t>(width), tensor.num_elements(), &total) || total > kMaxFixedWidthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("strings", tensor.shape().ToString(), " with a longest one of ", width,
                     " bytes would take more than 64 GiB in the fixed-width form of .npy"));
  }
  auto file = std::make_unique<NpyFile>();
  file->header = HeaderOf(absl::StrCat("|S", width), tensor.shape());
  file->converted.resize(static_cast<size_t>(total), '\0');
  for (size_t i = 0; i < values.size(); ++i)
    std::copy(values[i].begin(), values[i].end(), file->converted.begin() + i * width);
  file->data = file->converted;
  return file;
}

}  // namespace

std::string NpyArray::ToString() const {
  const DType natural = NaturalDType(*this);
  const std::string type = kind == 'S' || kind == 'V' ? absl::StrCat("|", std::string(1, kind), item_bytes)
                           : kind == 'U'              ? absl::StrCat("<U", item_bytes / 4)
                                                      : DTypeName(natural);
  return absl::StrCat(type, shape.ToString());
}

absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes, std::shared_ptr<const void> owner, absl::string_view label) {
  if (!absl::StartsWith(bytes, kMagic)) return Bad(label, "it does not begin with the mark \\x93NUMPY");
  if (bytes.size() < 8) return absl::DataLossError(absl::StrCat(label, ": ends within the .npy header"));
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) return Bad(label, absl::StrCat("unknown format version ", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) return absl::DataLossError(absl::StrCat(label, ": ends within the .npy header"));
  size_t header_bytes = 0;
  for (size_t i = 0; i < length_bytes; ++i)
    header_bytes |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  const size_t data_start = 8 + length_bytes + header_bytes;
  if (header_bytes > kMaxHeaderBytes) return Bad(label, absl::StrCat("a header of ", header_bytes, " bytes"));
  if (bytes.size() < data_start) return absl::DataLossError(absl::StrCat(label, ": ends within the .npy header"));

  THALWEG_ASSIGN_OR_RETURN(const Header header, ParseHeader(bytes.substr(8 + length_bytes, header_bytes), label));
  NpyArray array;
  THALWEG_RETURN_IF_ERROR(ParseDescr(header.descr, label, &array));
  absl::StatusOr<Shape> shape = Shape::Make(header.shape);
  if (!shape.ok()) return Bad(label, shape.status().message());
  array.shape = *std::move(shape);
  array.fortran_order = header.fortran_order;
  int64_t expected = 0;
  if (!CheckedMul(array.shape.num_elements(), array.item_bytes, &expected)) return Bad(label, "its size overflows");
  const int64_t there = static_cast<int64_t>(bytes.size() - data_start);
  if (there != expected) {
    return absl::DataLossError(
        absl::StrCat(label, ": ", array.ToString(), " takes ", expected, " bytes, but the file has ", there));
  }
  if (array.item_bytes == 0 && array.shape.num_elements() > (int64_t{1} << 24))
    return Bad(label, "too many empty strings");
  array.data = bytes.substr(data_start);
  array.owner = std::move(owner);
  return array;
}

DType NaturalDType(const NpyArray& array) {
  switch (array.kind) {
    case 'b': return DType::kBool;
    case 'S':
    case 'U': return DType::kString;
    case 'f':
      return array.item_bytes == 2 ? DType::kFloat16 : array.item_bytes == 4 ? DType::kFloat32 : DType::kFloat64;
    case 'c': return array.item_bytes == 8 ? DType::kComplex64 : DType::kComplex128;
    case 'i':
      return array.item_bytes == 1   ? DType::kInt8
             : array.item_bytes == 2 ? DType::kInt16
             : array.item_bytes == 4 ? DType::kInt32
                                     : DType::kInt64;
    case 'u':
      return array.item_bytes == 1   ? DType::kUInt8
             : array.item_bytes == 2 ? DType::kUInt16
             : array.item_bytes == 4 ? DType::kUInt32
                                     : DType::kUInt64;
    default: return DType::kInvalid;
  }
}

absl::StatusOr<Tensor> TensorFromNpy(const NpyArray& array, DType wanted) {
  const DType natural = NaturalDType(array);
  const DType target = wanted == DType::kInvalid ? natural : RemoveRef(wanted);
  if (target == DType::kInvalid) {
    return absl::InvalidArgumentError(
        absl::StrCat(array.ToString(), " is raw data; only a bfloat16 or float8 input takes it"));
  }
  if (target == natural) return natural == DType::kString ? StringTensor(array) : PlainTensor(array, natural);
  if (IsCarriedBy(target, array)) return PlainTensor(array, target);
  const Carrier carrier = CarrierOf(target);
  const std::string form =
      carrier.kind == 0 ? std::string()
                        : absl::StrCat(" (stored as ", carrier.kind == 'i' ? "int" : "uint", carrier.bytes * 8, ")");
  return absl::InvalidArgumentError(
      absl::StrCat("is ", array.ToString(), ", but the graph wants ", DTypeName(target), form));
}

absl::StatusOr<std::unique_ptr<NpyFile>> NpyFromTensor(const Tensor& tensor) {
  if (tensor.dtype() == DType::kString) return NpyFromStrings(tensor);
  const char* descr = DescrOf(tensor.dtype());
  if (descr == nullptr || tensor.memory() != MemoryKind::kHost) {
    return absl::UnimplementedError(
        absl::StrCat("a ", DTypeName(tensor.dtype()), " tensor has no form as a .npy array"));
  }
  auto file = std::make_unique<NpyFile>();
  file->header = HeaderOf(descr, tensor.shape());
  const size_t bytes = static_cast<size_t>(tensor.num_elements()) * DTypeSize(tensor.dtype());
  file->data = absl::string_view(static_cast<const char*>(tensor.raw()), bytes);
  return file;
}

}  // namespace thalweg::tools
