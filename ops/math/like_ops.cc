// ZerosLike and OnesLike.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

constexpr double kNanosPerByte = 0.05;

// All bits zero is the zero of every plain type.
class ZerosLikeKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocateOutput({0}, 0, shape));
    char* bytes = static_cast<char*>(out->mutable_raw());
    const int64_t size = static_cast<int64_t>(DTypeSize(out->dtype()));
    ctx.ParallelFor(shape.num_elements(), kNanosPerByte * static_cast<double>(size), [=](int64_t begin, int64_t end) {
      if (begin < end) std::memset(bytes + begin * size, 0, static_cast<size_t>((end - begin) * size));
    });
    return absl::OkStatus();
  }
};

// Objects are born empty.
class EmptyStringsKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override { return ctx.AllocateOutput(0, ctx.input(0).shape()).status(); }
};

template <typename T>
class OnesLikeKernel final : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocateOutput({0}, 0, shape));
    T* elements = static_cast<T*>(out->mutable_raw());
    ctx.ParallelFor(shape.num_elements(), kNanosPerByte * sizeof(T),
                    [=](int64_t begin, int64_t end) { std::fill(elements + begin, elements + end, T(1)); });
    return absl::OkStatus();
  }
};

template <typename... Ts>
void RegisterOnesLike(OpLibrary& lib, TypeList<Ts...>) {
  (lib.kernels.Add("OnesLike", "cpu", &MakeKernel<OnesLikeKernel<Ts>>).template Type<Ts>("T"), ...);
}

}  // namespace

void RegisterLikeOps(OpLibrary& lib) {
  lib.schemas.Add("ZerosLike(x: T) -> y: T", "T: type").Shape(UnchangedShape).Cost(CopyCost);
  lib.kernels.Add("ZerosLike", "cpu", &MakeKernel<ZerosLikeKernel>)
      .Type<half, bfloat16, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, bool,
            std::complex<float>, std::complex<double>>("T");
  lib.kernels.Add("ZerosLike", "cpu", &MakeKernel<EmptyStringsKernel>).Type<std::string>("T");

  lib.schemas.Add("OnesLike(x: T) -> y: T",
                  "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, complex64, "
                  "complex128, bool}")
      .Shape(UnchangedShape).Cost(CopyCost);
  RegisterOnesLike(lib, FloatTypes());
  RegisterOnesLike(lib, SignedTypes());
  RegisterOnesLike(lib, UnsignedTypes());
  RegisterOnesLike(lib, ComplexTypes());
  RegisterOnesLike(lib, TypeList<bool>());
}

}  // namespace thalweg::math
