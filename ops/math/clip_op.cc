// ClipByValue: elements kept between two bounds, each a scalar or a tensor of the elements' shape.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// The upper bound is applied first, so that the lower one wins where they cross.
template <typename T>
THALWEG_CLONES void ClipLoop(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState&) {
  const T* x = static_cast<const T*>(in[0]);
  const T* low = static_cast<const T*>(in[1]);
  const T* high = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) {
    const T most = high[k * strides[2]], least = low[k * strides[1]];
    const T below = x[k * strides[0]] > most ? most : x[k * strides[0]];
    o[k] = below < least ? least : below;
  }
}

template <typename T>
inline constexpr ElementwiseDef kClip = {.loop = &ClipLoop<T>,
                                         .num_inputs = 3,
                                         .input_types = {DTypeOf<T>::value, DTypeOf<T>::value, DTypeOf<T>::value},
                                         .output_type = DTypeOf<T>::value};

// T is the computing type.
template <typename T>
class ClipKernel final : public Kernel {
 public:
  explicit ClipKernel(const KernelInit& init) : elementwise_(kClip<T>, init.node()) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    for (int i = 1; i < 3; ++i) {
      const Shape& bound = ctx.input(i).shape();
      if (bound == shape || bound.rank() == 0) continue;
      return absl::InvalidArgumentError(absl::StrCat("bounds must be scalars or have the shape of the input, ", shape.ToString(),
                                                     ", but ", i == 1 ? "clip_value_min" : "clip_value_max", " has ", bound.ToString()));
    }
    return elementwise_.Compute(ctx);
  }

 private:
  ElementwiseKernel elementwise_;
};

template <typename... Ts>
void AddKernels(OpLibrary& lib, TypeList<Ts...>) {
  (lib.kernels.Add("ClipByValue", "cpu", &MakeKernel<ClipKernel<ComputingT<Ts>>>).template Type<Ts>("T"), ...);
}

}  // namespace

void RegisterClipOp(OpLibrary& lib) {
  lib.schemas.Add("ClipByValue(t: T, clip_value_min: T, clip_value_max: T) -> output: T", "T: numbertype")
      .Shape(UnchangedShape).Cost(ElementwiseCost<2>);
  AddKernels(lib, FloatTypes());
  AddKernels(lib, SignedTypes());
  AddKernels(lib, TypeList<uint8_t, uint16_t>());
}

}  // namespace thalweg::math
