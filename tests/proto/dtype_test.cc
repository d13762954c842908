#include "thalweg/proto/dtype.h"

#include <set>

#include "gtest/gtest.h"
#include "thalweg/types.pb.h"

namespace thalweg {
namespace {

TEST(DType, NumbersAndNamesAreThoseOfTheWireFormat) {
  for (int n = 1; n <= kMaxValueDType; ++n) {
    const DType t = static_cast<DType>(n);
    ASSERT_TRUE(IsValidDType(n)) << n;
    EXPECT_EQ(DTypeProtoName(t), DataType_Name(static_cast<DataType>(n)));
    EXPECT_EQ(DTypeProtoName(MakeRef(t)), DataType_Name(static_cast<DataType>(n + kRefDTypeOffset)));
  }
  for (int n : {-1, 0, 34, 100, 134, 1000}) EXPECT_FALSE(IsValidDType(n)) << n;
}

TEST(DType, EveryPrintedNameParsesBack) {
  std::set<std::string> names;
  for (int n = 1; n <= kMaxValueDType; ++n) {
    const DType t = static_cast<DType>(n);
    EXPECT_TRUE(names.insert(DTypeName(t)).second) << DTypeName(t);
    for (DType each : {t, MakeRef(t)}) {
      EXPECT_EQ(ParseDType(DTypeName(each)).value(), each);
      EXPECT_EQ(ParseDType(DTypeProtoName(each)).value(), each);
    }
  }
}

TEST(DType, OtherSpellings) {
  EXPECT_EQ(ParseDType("f32").value(), DType::kFloat32);
  EXPECT_EQ(ParseDType("float").value(), DType::kFloat32);
  EXPECT_EQ(ParseDType("double").value(), DType::kFloat64);
  EXPECT_EQ(ParseDType("half").value(), DType::kFloat16);
  EXPECT_EQ(ParseDType("bf16").value(), DType::kBFloat16);
  EXPECT_EQ(ParseDType("str").value(), DType::kString);
  for (const char* bad : {"", "float31", "_ref", "DT_", "DT_INVALID", "invalid", "FLOAT32"}) {
    EXPECT_EQ(ParseDType(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(DType, SizesAndClassesAreConsistent) {
  EXPECT_EQ(DTypeSize(DType::kFloat32), sizeof(float));
  EXPECT_EQ(DTypeSize(DType::kComplex128), 16u);
  EXPECT_EQ(DTypeSize(DType::kInt4), 1u);
  EXPECT_EQ(DTypeSize(DType::kBool), sizeof(bool));
  EXPECT_EQ(DTypeSize(static_cast<DType>(-5)), 0u);
  EXPECT_EQ(DTypeSize(static_cast<DType>(77)), 0u);
  for (int n = 1; n <= kMaxValueDType; ++n) {
    const DType t = static_cast<DType>(n);
    EXPECT_LE(IsFloating(t) + IsInteger(t) + IsComplex(t) + IsQuantized(t), 1) << DTypeName(t);
    const bool object = t == DType::kString || t == DType::kResource || t == DType::kVariant;
    EXPECT_EQ(IsPlainMemory(t), !object) << DTypeName(t);
    EXPECT_EQ(DTypeSize(MakeRef(t)), DTypeSize(t));
  }
}

template <typename T>
void CheckSize() {
  EXPECT_EQ(sizeof(T), DTypeSize(DTypeOf<T>::value)) << DTypeName(DTypeOf<T>::value);
}

TEST(DType, CppTypesHaveTheSizeOfTheirElementType) {
  CheckSize<float>();
  CheckSize<double>();
  CheckSize<int8_t>();
  CheckSize<int16_t>();
  CheckSize<int32_t>();
  CheckSize<int64_t>();
  CheckSize<uint8_t>();
  CheckSize<uint16_t>();
  CheckSize<uint32_t>();
  CheckSize<uint64_t>();
  CheckSize<bool>();
  CheckSize<half>();
  CheckSize<bfloat16>();
  CheckSize<std::complex<float>>();
  CheckSize<std::complex<double>>();
  CheckSize<qint8>();
  CheckSize<quint8>();
  CheckSize<qint16>();
  CheckSize<quint16>();
  CheckSize<qint32>();
  CheckSize<float8_e5m2>();
  CheckSize<float8_e4m3fn>();
  CheckSize<int4>();
  CheckSize<uint4>();
}

TEST(DType, ReferenceTypes) {
  EXPECT_TRUE(IsRef(MakeRef(DType::kFloat32)));
  EXPECT_EQ(RemoveRef(MakeRef(DType::kFloat32)), DType::kFloat32);
  EXPECT_EQ(MakeRef(MakeRef(DType::kInt64)), MakeRef(DType::kInt64));
  EXPECT_EQ(DTypeName(MakeRef(DType::kInt64)), "int64_ref");
  EXPECT_EQ(DTypeListString({DType::kFloat32, MakeRef(DType::kInt64)}), "[float32, int64_ref]");
  EXPECT_EQ(DTypeName(static_cast<DType>(77)), "invalid(77)");
}

}  // namespace
}  // namespace thalweg
