// The characters of long strings, counted against the memory limit like everything else.
//
// A tensor of strings keeps std::string objects in its buffer; the characters of a long one lie in memory of the C++
// library, which no allocator sees. Whoever makes such a tensor charges them here, for as long as the buffer lives.
// Threading: as for the tensors and allocators concerned. Errors: ResourceExhausted as from the allocator.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/devices/allocator.h"
#include "thalweg/devices/buffer.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/export.h"

namespace thalweg {

// What a string of this many characters occupies beyond its object; short ones lie inside it.
inline int64_t TextBytes(size_t characters) {
  constexpr size_t kInsideObject = 15;
  return characters <= kInsideObject ? 0 : static_cast<int64_t>(characters) + 1;
}
inline int64_t TextBytes(absl::Span<const std::string> strings) {
  int64_t bytes = 0;
  for (const std::string& s : strings) bytes += TextBytes(s.size());
  return bytes;
}

// Charges the allocator with bytes that lie elsewhere until the returned buffer, which has no memory, is dropped. Empty
// for an allocator that is not one of MakeHostAllocator's.
THALWEG_EXPORT absl::StatusOr<BufferRef> ChargeOnly(Allocator& allocator, int64_t bytes, int32_t node_id);

// Charges the text of a tensor of strings, once in the life of its buffer: what shares a buffer shares the charge.
// Wrapped memory of the user is not charged.
THALWEG_EXPORT absl::Status ChargeText(const Tensor& strings, Allocator& allocator, int32_t node_id);

}  // namespace thalweg
