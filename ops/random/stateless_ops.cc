// StatelessRandomUniform, ...Normal, ...UniformInt, ...UniformFullInt and StatelessTruncatedNormal: the numbers depend on
// shape and seed alone.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/random/number_kernels.h"
#include "thalweg/ops/random/random_ops.h"

namespace thalweg::random {
namespace {

struct SeedSource {
  explicit SeedSource(const KernelInit&) {}
  absl::StatusOr<Philox> Take(KernelContext& ctx, int64_t) { return PhiloxFromSeed(ctx.input(1)); }
};

template <template <typename> class Distribution, typename... Ts>
void AddKernels(OpLibrary& lib, absl::string_view op) {
  (lib.kernels.Add(op, "cpu", &MakeKernel<NumbersKernel<SeedSource, Fixed<Distribution<Ts>>>>)
       .template Type<Ts>("dtype").HostMemory("shape").HostMemory("seed"), ...);
}

template <template <typename> class Distribution>
void RegisterReal(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(shape: T, seed: Tseed) -> output: dtype"),
                  "dtype: {half, bfloat16, float, double} = float; T: {int32, int64} = int32; Tseed: {int32, int64} = int64")
      .Shape(StatelessShape).Cost(WrittenBytesCost);
  AddKernels<Distribution, half, bfloat16, float, double>(lib, op);
}

template <typename T>
void AddUniformInt(OpLibrary& lib) {
  lib.kernels.Add("StatelessRandomUniformInt", "cpu", &MakeKernel<NumbersKernel<SeedSource, Between<T, 2>>>)
      .template Type<T>("dtype").HostMemory("shape").HostMemory("seed").HostMemory("minval").HostMemory("maxval");
}

}  // namespace

void RegisterStatelessOps(OpLibrary& lib) {
  RegisterReal<UniformReal>(lib, "StatelessRandomUniform");
  RegisterReal<Normal>(lib, "StatelessRandomNormal");
  RegisterReal<TruncatedNormalNumber>(lib, "StatelessTruncatedNormal");

  lib.schemas.Add("StatelessRandomUniformInt(shape: T, seed: Tseed, minval: dtype, maxval: dtype) -> output: dtype",
                  "dtype: {int32, int64}; T: {int32, int64}; Tseed: {int32, int64} = int64")
      .Shape(StatelessShape).Cost(WrittenBytesCost);
  AddUniformInt<int32_t>(lib);
  AddUniformInt<int64_t>(lib);

  lib.schemas.Add("StatelessRandomUniformFullInt(shape: T, seed: Tseed) -> output: dtype",
                  "dtype: {int32, int64, uint32, uint64} = uint64; T: {int32, int64} = int32; "
                  "Tseed: {int32, int64, uint32, uint64} = int64")
      .Shape(StatelessShape).Cost(WrittenBytesCost);
  AddKernels<UniformBits, int32_t, int64_t, uint32_t, uint64_t>(lib, "StatelessRandomUniformFullInt");
}

}  // namespace thalweg::random
