#include "thalweg/devices/tensor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "thalweg/devices/object_buffer.h"
#include "thalweg/devices/text_memory.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

// Literals of at least this many bytes are shared rather than copied: below, a copy is cheaper than what sharing costs
// (the buffer cannot be written in place).
constexpr int64_t kShareLiteralBytes = 4096;

// Bytes from one element to the next, for objects too; 0 for an invalid type.
size_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kString: return sizeof(std::string);
    case DType::kResource: return sizeof(ResourceHandle);
    case DType::kVariant: return sizeof(Variant);
    default: return DTypeSize(dtype);
  }
}

// False if the bytes of all elements do not fit int64_t.
bool TotalBytes(DType dtype, const Shape& shape, int64_t* bytes) {
  return CheckedMul(shape.num_elements(), static_cast<int64_t>(ElementBytes(dtype)), bytes);
}

size_t ElementAlignment(DType dtype) {
  return IsPlainMemory(dtype) ? std::min<size_t>(DTypeSize(dtype), 8) : alignof(std::string);
}

bool IsAligned(const void* data, DType dtype) {
  return reinterpret_cast<uintptr_t>(data) % ElementAlignment(dtype) == 0;
}

absl::Status BadElementType(DType dtype) {
  return absl::InvalidArgumentError(absl::StrCat("a tensor cannot have the element type ", DTypeName(dtype)));
}

absl::Status TooLarge(DType dtype, const Shape& shape) {
  return absl::ResourceExhaustedError(
      absl::StrCat("a tensor ", DTypeName(dtype), shape.ToString(), " would take more than 2^63-1 bytes"));
}

absl::StatusOr<BufferRef> AllocateObjects(DType dtype, int64_t count, Allocator& allocator, int32_t node_id) {
  Allocator& host = allocator.memory() == MemoryKind::kHost ? allocator : DefaultHostAllocator();
  switch (dtype) {
    case DType::kString: return ObjectBuffer<std::string>::Make(count, host, node_id);
    case DType::kResource: return ObjectBuffer<ResourceHandle>::Make(count, host, node_id);
    default: return ObjectBuffer<Variant>::Make(count, host, node_id);
  }
}

// Memory of the user; runs the deleter when the last tensor lets go.
class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(void* data, size_t bytes, std::function<void()> deleter, bool writable)
      : Buffer(data, bytes, MemoryKind::kHost, /*node_id=*/-1, writable), deleter_(std::move(deleter)) {}

 private:
  ~WrappedBuffer() override {
    if (deleter_) deleter_();
  }

  std::function<void()> deleter_;
};

// The content of a literal, read only.
class LiteralBuffer final : public Buffer {
 public:
  explicit LiteralBuffer(TensorLiteralPtr literal)
      : Buffer(const_cast<char*>(literal->content.data()), literal->content.size(), MemoryKind::kHost, /*node_id=*/-1,
               /*writable=*/false),
        literal_(std::move(literal)) {}

 private:
  TensorLiteralPtr literal_;
};

bool CanShare(const TensorLiteral& literal) {
  const int64_t bytes = literal.MaterialisedBytes();
  return bytes >= kShareLiteralBytes && static_cast<int64_t>(literal.content.size()) == bytes &&
         IsAligned(literal.content.data(), literal.dtype);
}

// The text of a literal's tensor, where the last string stands for those that are missing.
absl::Status RequireTextMemory(const TensorLiteral& literal, int64_t count, Allocator& host) {
  if (literal.strings.empty() || count == 0) return absl::OkStatus();
  int64_t repeated;
  const int64_t missing = std::max<int64_t>(0, count - static_cast<int64_t>(literal.strings.size()));
  if (!CheckedMul(missing, TextBytes(literal.strings.back().size()), &repeated)) {
    return TooLarge(literal.dtype, literal.shape);
  }
  return repeated == 0 ? absl::OkStatus() : ChargeOnly(host, repeated, /*node_id=*/-1).status();
}

// The strings of a literal; the last one stands for those that are missing.
void CopyStrings(const TensorLiteral& literal, absl::Span<std::string> out) {
  if (literal.strings.empty()) return;
  for (size_t i = 0; i < out.size(); ++i) out[i] = literal.strings[std::min(i, literal.strings.size() - 1)];
}

// The shortest text that reads back as the same value.
template <typename T>
std::string NumberText(T value) {
  char text[64];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

template <typename T>
std::string ComplexText(std::complex<T> value) {
  const std::string sign = std::signbit(value.imag()) ? "" : "+";
  return absl::StrCat(NumberText(value.real()), sign, NumberText(value.imag()), "i");
}

std::string ObjectText(const ResourceHandle& handle) {
  if (handle.resource) return handle.resource->DebugString();
  return absl::StrCat("handle of ", handle.type_name.empty() ? "nothing" : handle.type_name, " '", handle.name, "'");
}

std::string ObjectText(const Variant& variant) { return variant ? variant->DebugString() : "null"; }

template <typename T>
T ElementAt(const void* data, int64_t i) {
  return static_cast<const T*>(data)[i];
}

std::string ElementText(DType dtype, const void* data, int64_t i) {
  switch (dtype) {
    case DType::kFloat32: return NumberText(ElementAt<float>(data, i));
    case DType::kFloat64: return NumberText(ElementAt<double>(data, i));
    case DType::kFloat16: return NumberText(static_cast<float>(ElementAt<half>(data, i)));
    case DType::kBFloat16: return NumberText(static_cast<float>(ElementAt<bfloat16>(data, i)));
    case DType::kFloat8E5M2: return NumberText(static_cast<float>(ElementAt<float8_e5m2>(data, i)));
    case DType::kFloat8E4M3FN: return NumberText(static_cast<float>(ElementAt<float8_e4m3fn>(data, i)));
    case DType::kInt8:
    case DType::kQInt8:
    case DType::kInt4:
    case DType::kInt2: return absl::StrCat(ElementAt<int8_t>(data, i));
    case DType::kInt16:
    case DType::kQInt16: return absl::StrCat(ElementAt<int16_t>(data, i));
    case DType::kInt32:
    case DType::kQInt32: return absl::StrCat(ElementAt<int32_t>(data, i));
    case DType::kInt64: return absl::StrCat(ElementAt<int64_t>(data, i));
    case DType::kUInt16:
    case DType::kQUInt16: return absl::StrCat(ElementAt<uint16_t>(data, i));
    case DType::kUInt32: return absl::StrCat(ElementAt<uint32_t>(data, i));
    case DType::kUInt64: return absl::StrCat(ElementAt<uint64_t>(data, i));
    case DType::kBool: return ElementAt<bool>(data, i) ? "true" : "false";
    case DType::kComplex64: return ComplexText(ElementAt<std::complex<float>>(data, i));
    case DType::kComplex128: return ComplexText(ElementAt<std::complex<double>>(data, i));
    case DType::kString: return absl::StrCat("\"", absl::CEscape(static_cast<const std::string*>(data)[i]), "\"");
    case DType::kResource: return ObjectText(static_cast<const ResourceHandle*>(data)[i]);
    case DType::kVariant: return ObjectText(static_cast<const Variant*>(data)[i]);
    default: return absl::StrCat(ElementAt<uint8_t>(data, i));  // unsigned bytes, and formats shown by their bits
  }
}

}  // namespace

absl::StatusOr<Tensor> Tensor::Allocate(DType dtype, Shape shape, Allocator& allocator, int32_t node_id) {
  if (ElementBytes(dtype) == 0 || IsRef(dtype)) return BadElementType(dtype);
  int64_t bytes;
  if (!TotalBytes(dtype, shape, &bytes)) return TooLarge(dtype, shape);
  absl::StatusOr<BufferRef> buffer = IsPlainMemory(dtype)
                                         ? allocator.Allocate(bytes, node_id)
                                         : AllocateObjects(dtype, shape.num_elements(), allocator, node_id);
  if (!buffer.ok()) return std::move(buffer).status();
  absl::StatusOr<Tensor> result{absl::in_place};
  result->dtype_ = dtype;
  result->data_ = (*buffer)->data();
  result->buffer_ = *std::move(buffer);
  result->shape_ = std::move(shape);
  return result;
}

absl::StatusOr<Tensor> Tensor::Wrap(void* data, DType dtype, Shape shape, std::function<void()> deleter,
                                    bool writable) {
  if (ElementBytes(dtype) == 0 || IsRef(dtype)) return BadElementType(dtype);
  int64_t bytes;
  if (!TotalBytes(dtype, shape, &bytes)) return TooLarge(dtype, shape);
  if (data == nullptr && bytes > 0) return absl::InvalidArgumentError("the memory to wrap is null");
  if (!IsAligned(data, dtype)) {
    if (!IsPlainMemory(dtype)) {
      return absl::InvalidArgumentError(absl::StrCat("the memory to wrap is not aligned to ", ElementAlignment(dtype),
                                                     " bytes, as elements of type ", DTypeName(dtype), " must be"));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor copy, Allocate(dtype, std::move(shape)));
    std::memcpy(copy.mutable_raw(), data, static_cast<size_t>(bytes));
    if (deleter) deleter();
    return copy;
  }
  BufferRef buffer(new WrappedBuffer(data, static_cast<size_t>(bytes), std::move(deleter), writable));
  return FromBuffer(dtype, std::move(shape), std::move(buffer), data);
}

absl::StatusOr<Tensor> Tensor::FromLiteral(const TensorLiteralPtr& literal, Allocator& allocator) {
  if (!literal->fault.empty()) return absl::InvalidArgumentError(literal->fault);
  if (CanShare(*literal)) {
    BufferRef buffer(new LiteralBuffer(literal));
    void* data = buffer->data();
    return FromBuffer(literal->dtype, literal->shape, std::move(buffer), data);
  }
  Allocator& host = allocator.memory() == MemoryKind::kHost ? allocator : DefaultHostAllocator();
  THALWEG_ASSIGN_OR_RETURN(Tensor tensor, Allocate(literal->dtype, literal->shape, host));
  if (IsPlainMemory(literal->dtype)) {
    literal->CopyTo(tensor.mutable_raw());
  } else if (literal->dtype == DType::kString) {
    THALWEG_RETURN_IF_ERROR(RequireTextMemory(*literal, tensor.num_elements(), host));
    CopyStrings(*literal, tensor.mutable_flat<std::string>());
    THALWEG_RETURN_IF_ERROR(ChargeText(tensor, host, /*node_id=*/-1));
  }
  return tensor;
}

absl::StatusOr<TensorLiteralPtr> Tensor::ToLiteral() const {
  if (!initialized()) return absl::FailedPreconditionError("an uninitialised tensor has no value");
  if (memory() == MemoryKind::kDevice) {
    return absl::FailedPreconditionError("the tensor is in device memory; copy it to the host first");
  }
  if (dtype_ == DType::kResource || dtype_ == DType::kVariant) {
    return absl::UnimplementedError(
        absl::StrCat("elements of type ", DTypeName(dtype_), " cannot be written as a constant"));
  }
  auto literal = std::make_shared<TensorLiteral>();
  literal->dtype = dtype_;
  literal->shape = shape_;
  if (dtype_ == DType::kString) {
    const absl::Span<const std::string> strings = flat<std::string>();
    literal->strings.assign(strings.begin(), strings.end());
  } else {
    literal->content = absl::string_view(static_cast<const char*>(data_), static_cast<size_t>(bytes()));
    literal->owner = std::make_shared<BufferRef>(buffer_);
  }
  return TensorLiteralPtr(std::move(literal));
}

int64_t Tensor::bytes() const {
  int64_t bytes = num_elements() * static_cast<int64_t>(ElementBytes(dtype_));
  for (const std::string& s : flat<std::string>()) bytes += static_cast<int64_t>(s.size());
  return bytes;
}

absl::StatusOr<Tensor> Tensor::Reshaped(Shape shape) const {
  if (shape.num_elements() != num_elements()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot reshape ", shape_.ToString(), " with ", num_elements(),
                                                   " elements to ", shape.ToString(), " with ", shape.num_elements()));
  }
  return AliasedAs(dtype_, std::move(shape));
}

Tensor Tensor::AliasedAs(DType dtype, Shape shape) const { return FromBuffer(dtype, std::move(shape), buffer_, data_); }

Tensor Tensor::Rows(int64_t begin, int64_t end) const {
  Dims dims(shape_.dims().begin(), shape_.dims().end());
  dims[0] = end - begin;
  const int64_t row_bytes = shape_.NumElements(1, rank()) * static_cast<int64_t>(ElementBytes(dtype_));
  // Fewer rows than a valid shape has make a valid shape.
  return FromBuffer(dtype_, *Shape::Make(dims), buffer_, static_cast<char*>(data_) + begin * row_bytes);
}

Tensor Tensor::FromBuffer(DType dtype, Shape shape, BufferRef buffer, void* data) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.buffer_ = std::move(buffer);
  tensor.data_ = data;
  return tensor;
}

std::string Tensor::ToString(int64_t limit) const {
  if (!initialized()) return "uninitialised tensor";
  std::string text = absl::StrCat(DTypeName(dtype_), shape_.ToString());
  if (memory() == MemoryKind::kDevice) return absl::StrCat(text, " in device memory");
  absl::StrAppend(&text, " {");
  const int64_t shown = std::min(limit, num_elements());
  for (int64_t i = 0; i < shown; ++i) absl::StrAppend(&text, i ? ", " : "", ElementText(dtype_, data_, i));
  if (shown < num_elements()) absl::StrAppend(&text, shown > 0 ? ", ..." : "...");
  return absl::StrCat(text, "}");
}

absl::Status ScalarAccessError(const Tensor& t, DType wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected a scalar ", DTypeName(wanted), ", got ", DTypeName(t.dtype()), t.shape().ToString()));
}

absl::Status ChargeText(const Tensor& strings, Allocator& allocator, int32_t node_id) {
  auto* buffer = dynamic_cast<ObjectBuffer<std::string>*>(strings.buffer().get());
  if (buffer == nullptr || buffer->charge()) return absl::OkStatus();
  const int64_t bytes = TextBytes(strings.flat<std::string>());
  if (bytes == 0) return absl::OkStatus();
  THALWEG_ASSIGN_OR_RETURN(BufferRef charge, ChargeOnly(allocator, bytes, node_id));
  buffer->set_charge(std::move(charge));
  return absl::OkStatus();
}

}  // namespace thalweg
