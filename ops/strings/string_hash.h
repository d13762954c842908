// Hash functions whose values are part of what graphs mean: buckets of words must be those that a model was trained with.
//
// Pure functions over any bytes.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace thalweg::strings {

// FarmHash's Fingerprint64.
uint64_t Fingerprint64(absl::string_view bytes);
// MurmurHash64A.
uint64_t MurmurHash64(absl::string_view bytes, uint64_t seed);
// SipHash-2-4 with a 128-bit key.
uint64_t SipHash(absl::string_view bytes, uint64_t key0, uint64_t key1);

}  // namespace thalweg::strings
