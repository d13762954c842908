// Stateless random ops that take key, counter and algorithm, and the ops that make these from a seed:
// StatelessRandomGetKeyCounter, StatelessRandomGetAlg, StatelessRandomGetKeyCounterAlg.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/ops/common/data_movement_cost.h"
#include "thalweg/ops/random/number_kernels.h"
#include "thalweg/ops/random/random_ops.h"

namespace thalweg::random {
namespace {

// The numbers that stand for algorithms in graphs. The third leaves the choice to the device.
constexpr int kPhilox = 1, kAnyAlgorithm = 3;

absl::Status CheckAlgorithm(const Tensor& algorithm) {
  THALWEG_ASSIGN_OR_RETURN(const int64_t number, IntScalarArg(algorithm, "alg"));
  if (number == kPhilox || number == kAnyAlgorithm) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("alg is ", number, "; this device has Philox (", kPhilox, " or ", kAnyAlgorithm, ")"));
}

struct KeyCounterSource {
  explicit KeyCounterSource(const KernelInit&) {}
  absl::StatusOr<Philox> Take(KernelContext& ctx, int64_t) {
    const Tensor& key = ctx.input(1);
    const Tensor& counter = ctx.input(2);
    THALWEG_RETURN_IF_ERROR(CheckAlgorithm(ctx.input(3)));
    if (key.shape() != Shape::Of({1})) {
      return absl::InvalidArgumentError(absl::StrCat("key must have shape [1], but its shape is ", key.shape().ToString()));
    }
    if (counter.rank() != 1 || counter.dim(0) < 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("counter must be a vector of at least 2 elements, but its shape is ", counter.shape().ToString()));
    }
    const absl::Span<const uint64_t> words = counter.flat<uint64_t>();
    return Philox(key.flat<uint64_t>()[0], words[0], words[1]);
  }
};

absl::Status KeyCounterShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(ShapeContext::Merge(c.input(1), PartialShape::OfDims({1})).status());
  THALWEG_RETURN_IF_ERROR(c.RequireRank(2, 1));
  for (int i = 3; i < c.num_inputs(); ++i) THALWEG_RETURN_IF_ERROR(c.RequireScalar(i));
  return ShapeFromInput(c);
}

template <template <typename> class Distribution, typename... Ts>
void AddKernels(OpLibrary& lib, absl::string_view op) {
  (lib.kernels.Add(op, "cpu", &MakeKernel<NumbersKernel<KeyCounterSource, Fixed<Distribution<Ts>>>>)
       .template Type<Ts>("dtype").HostMemory("shape").HostMemory("key").HostMemory("counter").HostMemory("alg"), ...);
}

template <template <typename> class Distribution>
void RegisterReal(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(shape: Tshape, key: uint64, counter: uint64, alg: int32) -> output: dtype"),
                  "dtype: {half, bfloat16, float, double} = float; Tshape: {int32, int64} = int32")
      .Shape(KeyCounterShape).Cost(WrittenBytesCost);
  AddKernels<Distribution, half, bfloat16, float, double>(lib, op);
}

template <typename... Ts>
void AddUniformInt(OpLibrary& lib) {
  (lib.kernels.Add("StatelessRandomUniformIntV2", "cpu", &MakeKernel<NumbersKernel<KeyCounterSource, Between<Ts, 4>>>)
       .template Type<Ts>("dtype").HostMemory("shape").HostMemory("key").HostMemory("counter").HostMemory("alg")
       .HostMemory("minval").HostMemory("maxval"), ...);
}

// key, counter and, if asked for, the algorithm.
class GetKeyCounterKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(const Philox philox, PhiloxFromSeed(ctx.input(0)));
    THALWEG_ASSIGN_OR_RETURN(Tensor * key, ctx.AllocateOutput(0, Shape::Of({1})));
    key->mutable_flat<uint64_t>()[0] = philox.key();
    THALWEG_ASSIGN_OR_RETURN(Tensor * counter, ctx.AllocateOutput(1, Shape::Of({2})));
    counter->mutable_flat<uint64_t>()[0] = philox.counter_low();
    counter->mutable_flat<uint64_t>()[1] = philox.counter_high();
    if (ctx.num_outputs() < 3) return absl::OkStatus();
    THALWEG_ASSIGN_OR_RETURN(Tensor * algorithm, ctx.AllocateOutput(2, Shape()));
    algorithm->mutable_flat<int32_t>()[0] = kPhilox;
    return absl::OkStatus();
  }
};

class GetAlgKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    THALWEG_ASSIGN_OR_RETURN(Tensor * algorithm, ctx.AllocateOutput(0, Shape()));
    algorithm->mutable_flat<int32_t>()[0] = kPhilox;
    return absl::OkStatus();
  }
};

absl::Status GetKeyCounterShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(ShapeContext::Merge(c.input(0), PartialShape::OfDims({2})).status());
  c.set_output(0, PartialShape::OfDims({1}));
  c.set_output(1, PartialShape::OfDims({2}));
  if (c.num_outputs() > 2) c.set_output(2, PartialShape::OfDims({}));
  return absl::OkStatus();
}

}  // namespace

void RegisterStatelessV2Ops(OpLibrary& lib) {
  RegisterReal<UniformReal>(lib, "StatelessRandomUniformV2");
  RegisterReal<Normal>(lib, "StatelessRandomNormalV2");
  RegisterReal<TruncatedNormalNumber>(lib, "StatelessTruncatedNormalV2");

  lib.schemas.Add("StatelessRandomUniformFullIntV2(shape: Tshape, key: uint64, counter: uint64, alg: int32) -> output: dtype",
                  "dtype: {int32, int64, uint32, uint64} = uint64; Tshape: {int32, int64} = int32")
      .Shape(KeyCounterShape).Cost(WrittenBytesCost);
  AddKernels<UniformBits, int32_t, int64_t, uint32_t, uint64_t>(lib, "StatelessRandomUniformFullIntV2");
  lib.schemas.Add("StatelessRandomUniformIntV2(shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype, "
                  "maxval: dtype) -> output: dtype",
                  "dtype: {int32, int64, uint32, uint64}; Tshape: {int32, int64} = int32")
      .Shape(KeyCounterShape).Cost(WrittenBytesCost);
  AddUniformInt<int32_t, int64_t, uint32_t, uint64_t>(lib);

  lib.schemas.Add("StatelessRandomGetKeyCounter(seed: Tseed) -> (key: uint64, counter: uint64)", "Tseed: {int32, int64} = int64")
      .Shape(GetKeyCounterShape).Cost(NoCost);
  lib.kernels.Add("StatelessRandomGetKeyCounter", "cpu", &MakeKernel<GetKeyCounterKernel>).HostMemory("seed");
  lib.schemas.Add("StatelessRandomGetKeyCounterAlg(seed: Tseed) -> (key: uint64, counter: uint64, alg: int32)",
                  "Tseed: {int32, int64} = int64")
      .Shape(GetKeyCounterShape).Cost(NoCost);
  lib.kernels.Add("StatelessRandomGetKeyCounterAlg", "cpu", &MakeKernel<GetKeyCounterKernel>).HostMemory("seed");
  lib.schemas.Add("StatelessRandomGetAlg() -> alg: int32").Stateful().Shape(ScalarShape).Cost(NoCost);
  lib.kernels.Add("StatelessRandomGetAlg", "cpu", &MakeKernel<GetAlgKernel>);
}

}  // namespace thalweg::random
