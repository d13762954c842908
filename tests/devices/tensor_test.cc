#include "thalweg/devices/tensor.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace thalweg {
namespace {

class NamedResource : public Resource {
 public:
  std::string DebugString() const override { return "a resource"; }
};

class NamedVariant : public VariantValue {
 public:
  absl::string_view type_name() const override { return "test"; }
  std::string DebugString() const override { return "a variant"; }
};

template <typename T>
void CheckElementType() {
  const DType dtype = DTypeOf<T>::value;
  absl::StatusOr<Tensor> t = Tensor::Allocate(dtype, Shape::Of({2, 3}));
  ASSERT_TRUE(t.ok()) << DTypeName(dtype) << t.status();
  EXPECT_EQ(t->dtype(), dtype);
  EXPECT_EQ(t->flat<T>().size(), 6u) << DTypeName(dtype);
  EXPECT_GE(t->bytes(), static_cast<int64_t>(6 * sizeof(T)));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t->raw()) % kBufferAlignment, 0u);
  for (T& element : t->mutable_flat<T>()) element = T();
  EXPECT_FALSE(t->ToString().empty());
}

TEST(Tensor, EveryElementType) {
  CheckElementType<float>();
  CheckElementType<double>();
  CheckElementType<int8_t>();
  CheckElementType<int16_t>();
  CheckElementType<int32_t>();
  CheckElementType<int64_t>();
  CheckElementType<uint8_t>();
  CheckElementType<uint16_t>();
  CheckElementType<uint32_t>();
  CheckElementType<uint64_t>();
  CheckElementType<bool>();
  CheckElementType<half>();
  CheckElementType<bfloat16>();
  CheckElementType<std::complex<float>>();
  CheckElementType<std::complex<double>>();
  CheckElementType<std::string>();
  CheckElementType<qint8>();
  CheckElementType<quint8>();
  CheckElementType<qint16>();
  CheckElementType<quint16>();
  CheckElementType<qint32>();
  CheckElementType<float8_e5m2>();
  CheckElementType<float8_e4m3fn>();
  CheckElementType<int4>();
  CheckElementType<uint4>();
  CheckElementType<ResourceHandle>();
  CheckElementType<Variant>();
  for (int n = 1; n <= kMaxValueDType; ++n) EXPECT_TRUE(Tensor::Allocate(static_cast<DType>(n), Shape()).ok()) << n;
}

TEST(Tensor, RefusesWhatIsNoElementType) {
  for (DType bad : {DType::kInvalid, static_cast<DType>(77), static_cast<DType>(-1), MakeRef(DType::kFloat32)}) {
    EXPECT_EQ(Tensor::Allocate(bad, Shape()).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Tensor::Wrap(nullptr, bad, Shape::Of({0}), nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Tensor, HugeShapesAreAStatus) {
  const Shape huge = Shape::Of({int64_t{1} << 61});
  EXPECT_EQ(Tensor::Allocate(DType::kFloat64, huge).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Tensor::Allocate(DType::kUInt8, huge).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Tensor::Allocate(DType::kString, huge).status().code(), absl::StatusCode::kResourceExhausted);
}

// Robustness rule 1: an accessor never gives a wrong view.
TEST(Tensor, AccessorsCheckTypeAndRank) {
  const Tensor vector = Tensor::Of<float>({1}, Shape::Of({1})).value();
  EXPECT_TRUE(vector.flat<int32_t>().empty());
  EXPECT_EQ(vector.scalar<float>().status().code(), absl::StatusCode::kInvalidArgument);
  const Tensor scalar = Tensor::Scalar(2.5f).value();
  EXPECT_EQ(scalar.scalar<float>().value(), 2.5f);
  EXPECT_EQ(scalar.scalar<double>().status().message(), "expected a scalar float64, got float32[]");
  const Tensor none;
  EXPECT_TRUE(none.flat<float>().empty());
  EXPECT_FALSE(none.scalar<float>().ok());
  EXPECT_FALSE(none.initialized());
  EXPECT_EQ(Tensor::Of<float>({1, 2}, Shape::Of({3})).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Tensor, WrapCallsTheDeleterOnceWhenTheLastShareIsGone) {
  int deleted = 0;
  float values[] = {1, 2, 3, 4};
  {
    Tensor t = Tensor::Wrap(values, DType::kFloat32, Shape::Of({2, 2}), [&deleted] { ++deleted; }).value();
    EXPECT_EQ(t.raw(), values);
    EXPECT_FALSE(t.OwnsBufferAlone()) << "read only unless said otherwise";
    const Tensor copy = t;
    const Tensor row = t.Rows(1, 2);
    t = Tensor();
    EXPECT_EQ(row.flat<float>()[0], 3);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(Tensor, WrapChecksItsMemory) {
  alignas(8) char bytes[64];
  EXPECT_EQ(Tensor::Wrap(nullptr, DType::kFloat32, Shape::Of({1}), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Tensor::Wrap(bytes + 1, DType::kString, Shape::Of({1}), nullptr).status().code(),
            absl::StatusCode::kInvalidArgument)
      << "objects cannot be where they are said to be";
  EXPECT_TRUE(Tensor::Wrap(bytes + 1, DType::kUInt8, Shape::Of({1}), nullptr).ok());
  EXPECT_TRUE(Tensor::Wrap(nullptr, DType::kFloat32, Shape::Of({0}), nullptr).ok());
  EXPECT_TRUE(Tensor::Wrap(bytes, DType::kFloat32, Shape::Of({1}), nullptr, /*writable=*/true)->OwnsBufferAlone());
}

// A21 of the users' wishes: any alignment is accepted; what cannot be read in place is copied, once, and counted.
TEST(Tensor, WrapCopiesMisalignedMemoryAndReleasesItAtOnce) {
  const float values[] = {1, 2, 3};
  alignas(float) char bytes[sizeof(values) + 1];
  std::memcpy(bytes + 1, values, sizeof(values));
  int deleted = 0;
  const int64_t allocations = DefaultHostAllocator().stats().allocations;
  const Tensor t = Tensor::Wrap(bytes + 1, DType::kFloat32, Shape::Of({3}), [&deleted] { ++deleted; }).value();
  EXPECT_EQ(deleted, 1);
  EXPECT_EQ(DefaultHostAllocator().stats().allocations, allocations + 1);
  std::memset(bytes, 0, sizeof(bytes));
  const Tensor share = t;
  EXPECT_EQ(share.flat<float>(), absl::MakeConstSpan(values));
  EXPECT_EQ(DefaultHostAllocator().stats().allocations, allocations + 1);
}

TEST(Tensor, CopiesShareAndUniquenessIsSeen) {
  Tensor a = Tensor::Of<float>({1, 2, 3, 4, 5, 6}, Shape::Of({3, 2})).value();
  EXPECT_TRUE(a.OwnsBufferAlone());
  {
    const Tensor b = a;
    EXPECT_TRUE(a.SharesBufferWith(b));
    EXPECT_FALSE(a.OwnsBufferAlone());
  }
  EXPECT_TRUE(a.OwnsBufferAlone());
  const Tensor moved = std::move(a);
  EXPECT_TRUE(moved.OwnsBufferAlone());
}

TEST(Tensor, ReshapesAndRowsAreViews) {
  const Tensor t = Tensor::Of<float>({1, 2, 3, 4, 5, 6}, Shape::Of({3, 2})).value();
  const Tensor reshaped = t.Reshaped(Shape::Of({6})).value();
  EXPECT_EQ(reshaped.raw(), t.raw());
  EXPECT_EQ(t.Reshaped(Shape::Of({5})).status().code(), absl::StatusCode::kInvalidArgument);
  const Tensor rows = t.Rows(1, 3);
  EXPECT_EQ(rows.shape(), Shape::Of({2, 2}));
  EXPECT_EQ(rows.flat<float>()[0], 3);
  EXPECT_TRUE(rows.SharesBufferWith(t));
  EXPECT_EQ(t.Rows(3, 3).num_elements(), 0);
  const Tensor bits = t.AliasedAs(DType::kInt32, t.shape());
  EXPECT_EQ(bits.flat<int32_t>()[0], 0x3f800000);
  const Tensor strings = Tensor::Of<std::string>({"a", "b"}, Shape::Of({2})).value();
  EXPECT_EQ(strings.Rows(1, 2).flat<std::string>()[0], "b");
}

TEST(Tensor, BytesCountCharacters) {
  const std::string text(1000, 'x');
  EXPECT_EQ(Tensor::Of<std::string>({text, ""}, Shape::Of({2}))->bytes(),
            static_cast<int64_t>(1000 + 2 * sizeof(std::string)));
  EXPECT_EQ(Tensor::Of<double>({1, 2}, Shape::Of({2}))->bytes(), 16);
  EXPECT_EQ(Tensor().bytes(), 0);
}

TensorLiteralPtr Literal(DType dtype, Shape shape, absl::string_view content, std::vector<std::string> strings = {}) {
  auto literal = std::make_shared<TensorLiteral>();
  literal->dtype = dtype;
  literal->shape = std::move(shape);
  literal->content = content;
  literal->strings = std::move(strings);
  return literal;
}

TEST(Tensor, LargeLiteralsAreSharedSmallOnesCopied) {
  const std::vector<float> values(2000, 1.5f);
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * 4);
  const TensorLiteralPtr large = Literal(DType::kFloat32, Shape::Of({2000}), bytes);
  Tensor shared = Tensor::FromLiteral(large).value();
  EXPECT_EQ(shared.raw(), values.data());
  EXPECT_FALSE(shared.OwnsBufferAlone()) << "a constant is never computed in place";
  EXPECT_EQ(large.use_count(), 2);
  shared = Tensor();
  EXPECT_EQ(large.use_count(), 1);
  const Tensor copied = Tensor::FromLiteral(Literal(DType::kFloat32, Shape::Of({2}), bytes.substr(0, 8))).value();
  EXPECT_NE(copied.raw(), values.data());
  EXPECT_EQ(copied.flat<float>()[1], 1.5f);
}

TEST(Tensor, LiteralsInFilesMayBeMisaligned) {
  const std::string bytes(8001, '\0');
  const Tensor t =
      Tensor::FromLiteral(Literal(DType::kFloat32, Shape::Of({2000}), absl::string_view(bytes).substr(1))).value();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.raw()) % kBufferAlignment, 0u);
}

TEST(Tensor, LiteralsRepeatTheirLastElement) {  // semantics L12
  const float two[] = {1, 2};
  const Tensor t = Tensor::FromLiteral(Literal(DType::kFloat32, Shape::Of({5}),
                                               absl::string_view(reinterpret_cast<const char*>(two), 8)))
                       .value();
  EXPECT_EQ(std::vector<float>(t.flat<float>().begin(), t.flat<float>().end()), (std::vector<float>{1, 2, 2, 2, 2}));
  const Tensor strings = Tensor::FromLiteral(Literal(DType::kString, Shape::Of({3}), "", {"a", "b"})).value();
  EXPECT_EQ(strings.flat<std::string>()[2], "b");
  EXPECT_EQ(Tensor::FromLiteral(Literal(DType::kString, Shape::Of({3}), ""))->flat<std::string>()[2], "");
  EXPECT_EQ(Tensor::FromLiteral(Literal(DType::kVariant, Shape(), ""))->flat<Variant>()[0], nullptr);
}

TEST(Tensor, RepeatedLiteralsObeyTheLimit) {  // robustness rule 24
  auto allocator = MakeHostAllocator("limited", std::make_shared<MemoryBudget>(1000));
  const auto literal = Literal(DType::kFloat32, Shape::Of({1 << 20}), "");
  EXPECT_EQ(Tensor::FromLiteral(literal, *allocator).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Tensor, ToLiteralSharesTheBuffer) {
  Tensor t = Tensor::Of<float>({1, 2, 3, 4}, Shape::Of({2, 2})).value();
  const TensorLiteralPtr literal = t.Rows(1, 2).ToLiteral().value();
  EXPECT_EQ(literal->content.data(), static_cast<const char*>(t.raw()) + 8);
  EXPECT_FALSE(t.OwnsBufferAlone());
  t = Tensor();
  float out[2];
  literal->CopyTo(out);
  EXPECT_EQ(out[1], 4);
  EXPECT_EQ(Tensor::Of<std::string>({"a"}, Shape())->ToLiteral().value()->strings, std::vector<std::string>{"a"});
  EXPECT_EQ(Tensor::Allocate(DType::kVariant, Shape())->ToLiteral().status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(Tensor().ToLiteral().ok());
}

TEST(Tensor, PrintsItsElements) {
  EXPECT_EQ(Tensor::Of<float>({1, 0.1f, -INFINITY}, Shape::Of({3}))->ToString(), "float32[3] {1, 0.1, -inf}");
  EXPECT_EQ(Tensor::Of<int8_t>({-1, 2, 3}, Shape::Of({3}))->ToString(2), "int8[3] {-1, 2, ...}");
  EXPECT_EQ(Tensor::Of<bool>({true}, Shape())->ToString(), "bool[] {true}");
  EXPECT_EQ(Tensor::Of<half>({half(0.5f)}, Shape())->ToString(), "float16[] {0.5}");
  EXPECT_EQ(Tensor::Of<std::complex<float>>({{1, -2}}, Shape())->ToString(), "complex64[] {1-2i}");
  EXPECT_EQ(Tensor::Of<std::string>({"a\n\x01"}, Shape())->ToString(), "string[] {\"a\\n\\001\"}");
  EXPECT_EQ(Tensor::Of<uint64_t>({~uint64_t{0}}, Shape())->ToString(), "uint64[] {18446744073709551615}");
  EXPECT_EQ(Tensor::Of<float>({}, Shape::Of({0}))->ToString(), "float32[0] {}");
  EXPECT_EQ(Tensor().ToString(), "uninitialised tensor");
}

TEST(Tensor, PrintsObjects) {
  ResourceHandle named;
  named.name = "w";
  named.type_name = "Variable";
  ResourceHandle anonymous;
  anonymous.resource = std::make_shared<NamedResource>();
  EXPECT_EQ(Tensor::Of<ResourceHandle>({named, anonymous}, Shape::Of({2}))->ToString(),
            "resource[2] {handle of Variable 'w', a resource}");
  EXPECT_EQ(Tensor::Of<Variant>({nullptr, std::make_shared<NamedVariant>()}, Shape::Of({2}))->ToString(),
            "variant[2] {null, a variant}");
}

TEST(Tensor, ObjectsAreDestroyedWithTheLastShare) {
  auto resource = std::make_shared<NamedResource>();
  ResourceHandle handle;
  handle.resource = resource;
  Tensor t = Tensor::Scalar(handle).value();
  handle.resource.reset();
  EXPECT_EQ(resource.use_count(), 2);
  t = Tensor();
  EXPECT_EQ(resource.use_count(), 1);
}

}  // namespace
}  // namespace thalweg
