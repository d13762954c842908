// RandomUniform, RandomUniformInt, RandomStandardNormal, TruncatedNormal: each node has a stream of its own, which goes on
// from step to step.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/random/number_kernels.h"
#include "thalweg/ops/random/random_ops.h"

namespace thalweg::random {
namespace {

class StreamSource {
 public:
  explicit StreamSource(const KernelInit& init) : stream_(init.node().node_attrs()) {}
  absl::StatusOr<Philox> Take(KernelContext&, int64_t count) {
    return stream_.Reserve(static_cast<uint64_t>(count) * kBlocksPerOutput);
  }

 private:
  RandomStream stream_;
};

template <template <typename> class Distribution, typename... Ts>
void RegisterReal(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(shape: T) -> output: dtype"),
                  "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}")
      .Stateful().Shape(ShapeFromInput).Cost(WrittenBytesCost);
  (lib.kernels.Add(op, "cpu", &MakeKernel<NumbersKernel<StreamSource, Fixed<Distribution<Ts>>>>)
       .template Type<Ts>("dtype").HostMemory("shape"), ...);
}

absl::Status UniformIntShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(2));
  return ShapeFromInput(c);
}

template <typename T>
void AddUniformInt(OpLibrary& lib) {
  lib.kernels.Add("RandomUniformInt", "cpu", &MakeKernel<NumbersKernel<StreamSource, Between<T, 1>>>)
      .template Type<T>("Tout").HostMemory("shape").HostMemory("minval").HostMemory("maxval");
}

}  // namespace

void RegisterStatefulOps(OpLibrary& lib) {
  RegisterReal<UniformReal, half, bfloat16, float, double>(lib, "RandomUniform");
  RegisterReal<Normal, half, bfloat16, float, double>(lib, "RandomStandardNormal");
  RegisterReal<TruncatedNormalNumber, half, bfloat16, float, double>(lib, "TruncatedNormal");

  lib.schemas.Add("RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> output: Tout",
                  "seed: int = 0; seed2: int = 0; Tout: {int32, int64}; T: {int32, int64}")
      .Stateful().Shape(UniformIntShape).Cost(WrittenBytesCost);
  AddUniformInt<int32_t>(lib);
  AddUniformInt<int64_t>(lib);
}

}  // namespace thalweg::random
