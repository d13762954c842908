// Values written out on the command line: 3.5, true, "text", 1+2j, [[1,2],[3,4]].
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/shape.h"

namespace thalweg::tools {

// Elements as texts in row-major order, with the shape that the brackets give.
struct LiteralText {
  struct Element {
    std::string text;
    bool quoted = false;
  };
  std::vector<Element> elements;
  Shape shape;
};

// InvalidArgument for ragged lists, unbalanced brackets or quotes.
absl::StatusOr<LiteralText> ParseLiteral(absl::string_view text);
// The type that the elements have by themselves: bool, int32 (int64 if one is larger), float32, complex64 or string.
DType NaturalDType(const LiteralText& literal);
// InvalidArgument, quoting the element, if one is no value of `dtype`.
absl::StatusOr<Tensor> TensorFromLiteralText(const LiteralText& literal, DType dtype);

}  // namespace thalweg::tools
