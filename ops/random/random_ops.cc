#include "thalweg/ops/random/random_ops.h"

#include <random>

#include "absl/strings/str_cat.h"
#include "thalweg/ops/random/register.h"

namespace thalweg {

void RegisterRandomOps(OpLibrary& lib) {
  random::RegisterStatefulOps(lib);
  random::RegisterStatelessOps(lib);
  random::RegisterStatelessV2Ops(lib);
  random::RegisterShuffleOps(lib);
  random::RegisterMultinomialOps(lib);
}

namespace random {
namespace {

uint64_t Entropy() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

Philox StartOfStream(const NodeAttrs& attrs) {
  const uint64_t seed = static_cast<uint64_t>(attrs.GetOr<int64_t>("seed", 0));
  const uint64_t seed2 = static_cast<uint64_t>(attrs.GetOr<int64_t>("seed2", 0));
  return seed == 0 && seed2 == 0 ? Philox(Entropy(), Entropy()) : Philox(seed, seed2);
}

}  // namespace

RandomStream::RandomStream(const NodeAttrs& attrs) : philox_(StartOfStream(attrs)) {}

Philox RandomStream::Reserve(uint64_t blocks) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Philox reserved = philox_;
  philox_.Skip(blocks);
  return reserved;
}

absl::StatusOr<Philox> PhiloxFromSeed(const Tensor& seed) {
  if (seed.shape() != Shape::Of({2})) {
    return absl::InvalidArgumentError(absl::StrCat("seed must have shape [2], but its shape is ", seed.shape().ToString()));
  }
  uint64_t parts[2] = {};
  for (int i = 0; i < 2; ++i) {
    switch (seed.dtype()) {
      case DType::kInt32: parts[i] = static_cast<uint64_t>(int64_t{seed.flat<int32_t>()[i]}); break;
      case DType::kUInt32: parts[i] = seed.flat<uint32_t>()[i]; break;
      case DType::kUInt64: parts[i] = seed.flat<uint64_t>()[i]; break;
      default: parts[i] = static_cast<uint64_t>(seed.flat<int64_t>()[i]); break;
    }
  }
  // Mixed once with a fixed key, so that seeds which differ little give streams that have nothing in common.
  constexpr uint64_t kMixKey = 0x02461e293ec8f720;
  const Philox::Block mixed = Philox(kMixKey, parts[0], parts[1])();
  return Philox(uint64_t{mixed[1]} << 32 | mixed[0], 0, uint64_t{mixed[3]} << 32 | mixed[2]);
}

absl::Status ShapeFromInput(ShapeContext& c) {
  THALWEG_ASSIGN_OR_RETURN(PartialShape shape, c.input_as_shape(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status StatelessShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(ShapeContext::Merge(c.input(1), PartialShape::OfDims({2})).status());
  for (int i = 2; i < c.num_inputs(); ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  return ShapeFromInput(c);
}

}  // namespace random
}  // namespace thalweg
