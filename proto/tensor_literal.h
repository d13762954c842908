// TensorLiteral: a constant as written in a graph (the `value` attribute of Const and the like), without a device.
//
// It keeps either raw row-major little-endian content (possibly a view into a mapped file, kept alive by `owner`) or
// the strings of a string tensor. Values given once for many elements ("the last value repeats") stay compact:
// `content` then holds fewer elements than the shape asks for, and the last one (or zero, if there is none) stands for
// the rest. A value that the file garbles (content of a wrong length, L12) has no content but says so in `fault`: a
// graph with such a constant loads, and what fails is making a tensor of it. Immutable after construction; share it by
// TensorLiteralPtr.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/export.h"
#include "thalweg/proto/shape.h"

namespace thalweg {

class TensorProto;  // the generated message; defined in thalweg/tensor.pb.h

struct THALWEG_EXPORT TensorLiteral {
  DType dtype = DType::kInvalid;
  Shape shape;
  absl::string_view content;          // plain types: stored elements, at most shape.num_elements() of them
  std::vector<std::string> strings;   // string tensors: stored elements, at most shape.num_elements() of them
  std::shared_ptr<const void> owner;  // keeps `content` alive
  std::string fault;                  // non-empty: why there is no value

  // Bytes that a materialised tensor of this literal takes (strings: of the std::string objects).
  int64_t MaterialisedBytes() const;
  // Writes all elements of a plain type, repeated ones expanded. Requires room for num_elements * DTypeSize bytes, and no
  // fault.
  void CopyTo(void* out) const;
  // Reads integers of any integer type (and bool). InvalidArgument for other types, more than `limit` elements, or a fault.
  absl::StatusOr<std::vector<int64_t>> ToInt64s(int64_t limit = 1024) const;
};
using TensorLiteralPtr = std::shared_ptr<const TensorLiteral>;

// Decodes a TensorProto (semantics L12): InvalidArgument for an unknown dtype or a shape that is not fully known and
// valid. Content that does not fit them, and resources and variants other than default ones, give a literal with a
// fault. Surplus values are ignored. The literal has its own copy of the content.
absl::StatusOr<TensorLiteralPtr> DecodeTensorProto(const TensorProto& proto);
// The same where tensor_content was left out of `proto` and stands elsewhere (a mapped file). The literal's content is a
// view of it where its bytes can be used as they stand, and shares `owner`, which keeps them alive.
absl::StatusOr<TensorLiteralPtr> DecodeTensorProto(const TensorProto& proto, absl::string_view external_content,
                                                   std::shared_ptr<const void> owner);
// Writes what DecodeTensorProto reads as the same literal: content if all elements are stored, else single values.
void EncodeTensorProto(const TensorLiteral& literal, TensorProto* proto);

}  // namespace thalweg
