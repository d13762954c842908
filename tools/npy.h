// NumPy's .npy form of one array, read from and written to memory.
//
// Reading takes what other programs write and trusts nothing: header grammar, shape and data length are checked before
// anything is allocated. Element kinds: bool, integers, floats, complex, |S, <U, and raw |V1 and |V2 (how NumPy stores
// float8 and bfloat16 of other libraries). Fortran order is accepted. Refused, with the reason: big-endian, structured
// and object arrays. Threading: plain values and pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/dtype.h"
#include "thalweg/proto/shape.h"

namespace thalweg::tools {

// An array as it stands in a file.
struct NpyArray {
  char kind = 0;  // 'b', 'i', 'u', 'f', 'c', 'S', 'U', 'V'
  int64_t item_bytes = 0;
  bool fortran_order = false;
  Shape shape;
  absl::string_view data;             // shape.num_elements() * item_bytes bytes, little-endian
  std::shared_ptr<const void> owner;  // keeps `data` alive

  // "float32[2,3]", "|S5[4]": for messages.
  std::string ToString() const;
};

// `bytes` is a whole .npy file, kept alive by `owner`; `label` names it in messages. DataLoss if it ends too early,
// InvalidArgument for what is not an array or is longer than it says, Unimplemented for kinds that are refused.
absl::StatusOr<NpyArray> ParseNpy(absl::string_view bytes, std::shared_ptr<const void> owner, absl::string_view label);

// The element type that the array has by itself: <U and |S are strings. kInvalid for raw |V.
DType NaturalDType(const NpyArray& array);

// A tensor of the array, for a graph that wants `wanted` (kInvalid: the natural type). The types that have no plain
// form are taken as their bits: bfloat16 from uint16, float8 from uint8, quantized and 4-bit types from integers.
// Trailing NULs of strings are dropped. InvalidArgument for any other difference of types.
absl::StatusOr<Tensor> TensorFromNpy(const NpyArray& array, DType wanted);

// The whole .npy file of a tensor in host memory: header and data, so that large data is not copied before it is
// written.
struct NpyFile {
  std::string header;
  std::string converted;   // strings in fixed width; empty for plain types, whose bytes are in `data`
  absl::string_view data;  // points into `converted` or into the tensor
};
// The result's `data` is valid as long as both the result and `tensor` are. Unimplemented for resources and variants,
// InvalidArgument for strings whose fixed-width form would be absurdly large.
absl::StatusOr<std::unique_ptr<NpyFile>> NpyFromTensor(const Tensor& tensor);

}  // namespace thalweg::tools
