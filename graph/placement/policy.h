// Policies: which of its candidates a node gets. Constraints are not their business.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace thalweg {

struct PlacementPolicy {
  enum class Kind {
    kDefault,  // TensorFlow's rules: the first candidate, generators and metadata with their neighbours (C14, C17, C18)
    kScatter,  // every group on a random candidate, by node name and seed
  };
  Kind kind = Kind::kDefault;
  uint64_t seed = 0;
};

// "default", "scatter", "scatter~SEED"; InvalidArgument, naming what there is, for anything else.
absl::StatusOr<PlacementPolicy> ParsePlacementPolicy(const std::string& text);

}  // namespace thalweg
