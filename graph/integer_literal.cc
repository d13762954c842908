#include "thalweg/graph/integer_literal.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

namespace thalweg {
namespace {

template <typename T>
TensorLiteralPtr MakeLiteral(DType dtype, const Shape& shape, const std::vector<int64_t>& values) {
  auto bytes = std::make_shared<std::string>();
  for (int64_t value : values) {
    const T typed = static_cast<T>(value);
    bytes->append(reinterpret_cast<const char*>(&typed), sizeof(typed));
  }
  auto literal = std::make_shared<TensorLiteral>();
  literal->dtype = dtype;
  literal->shape = shape;
  literal->content = *bytes;
  literal->owner = bytes;
  return literal;
}

bool FitsInt32(int64_t value) {
  return value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
}

}  // namespace

TensorLiteralPtr IntegerLiteral(DType dtype, const Shape& shape, const std::vector<int64_t>& values) {
  if (dtype == DType::kInt64) return MakeLiteral<int64_t>(dtype, shape, values);
  if (dtype != DType::kInt32 || !std::all_of(values.begin(), values.end(), FitsInt32)) return nullptr;
  return MakeLiteral<int32_t>(dtype, shape, values);
}

}  // namespace thalweg
