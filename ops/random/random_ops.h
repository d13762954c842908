// The parts of RegisterRandomOps, one per file, and what they share.
#pragma once

#include <mutex>

#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/philox.h"
#include "thalweg/ops/kernel_registry.h"

namespace thalweg::random {

void RegisterStatefulOps(OpLibrary& lib);   // RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal
void RegisterStatelessOps(OpLibrary& lib);  // Stateless..., with a seed
void RegisterStatelessV2Ops(OpLibrary& lib);  // Stateless...V2, with key and counter; the ops that make these
void RegisterShuffleOps(OpLibrary& lib);
void RegisterMultinomialOps(OpLibrary& lib);

// The stream of a stateful op: where the next execution goes on. Thread-safe.
class RandomStream {
 public:
  // From the attributes seed and seed2; two zeros ask for a stream that nobody can foretell.
  explicit RandomStream(const NodeAttrs& attrs);
  // A generator with `blocks` blocks that no other call gets.
  Philox Reserve(uint64_t blocks);

 private:
  std::mutex mutex_;
  Philox philox_;
};

// Blocks that TensorFlow sets aside for each number of a stateful op.
inline constexpr uint64_t kBlocksPerOutput = 256;

// Where the stream of a stateless op with this two-element seed starts. InvalidArgument for any other shape.
absl::StatusOr<Philox> PhiloxFromSeed(const Tensor& seed);

// Shape functions. Output 0 has the shape in input 0:
absl::Status ShapeFromInput(ShapeContext& c);
// ... and input 1 is a seed of two elements.
absl::Status StatelessShape(ShapeContext& c);

}  // namespace thalweg::random
