// Equal, NotEqual.
#include <memory>
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct EqualOp {
  template <typename T> static bool Apply(T a, T b) { return a == b; }
};
struct NotEqualOp {
  template <typename T> static bool Apply(T a, T b) { return a != b; }
};
template <bool kWhenEqual>
void CompareStrings(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState&) {
  const std::string* a = static_cast<const std::string*>(in[0]);
  const std::string* b = static_cast<const std::string*>(in[1]);
  bool* o = static_cast<bool*>(out);
  for (int64_t k = 0; k < n; ++k) o[k] = (a[k * strides[0]] == b[k * strides[1]]) == kWhenEqual;
}

template <bool kWhenEqual>
constexpr ElementwiseDef kCompareStrings = {.loop = &CompareStrings<kWhenEqual>,
                                            .num_inputs = 2,
                                            .input_types = {DType::kString, DType::kString},
                                            .output_type = DType::kBool,
                                            .nanos_per_element = 5};

// Equal and NotEqual with incompatible_shape_error=false: shapes that do not broadcast give one answer, a scalar (L19).
class LenientEqualityKernel final : public Kernel {
 public:
  LenientEqualityKernel(const ElementwiseDef& def, const KernelNode& node, bool when_unfit)
      : compare_(def, node), when_unfit_(when_unfit) {}

  absl::Status Compute(KernelContext& ctx) override {
    if (BroadcastShapes(ctx.input(0).shape(), ctx.input(1).shape()).ok()) return compare_.Compute(ctx);
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<bool>()[0] = when_unfit_;
    return absl::OkStatus();
  }

 private:
  ElementwiseKernel compare_;
  const bool when_unfit_;
};

template <const ElementwiseDef& def, bool kWhenUnfit>
absl::StatusOr<std::unique_ptr<Kernel>> MakeEquality(const KernelInit& init) {
  THALWEG_ASSIGN_OR_RETURN(const bool strict, init.Attr<bool>("incompatible_shape_error"));
  if (strict) return MakeElementwise<def>(init);
  return std::unique_ptr<Kernel>(std::make_unique<LenientEqualityKernel>(def, init.node(), kWhenUnfit));
}

absl::Status EqualityShape(ShapeContext& c) {
  if (c.attrs().GetOr<bool>("incompatible_shape_error", true)) return BroadcastShape(c);
  if (!c.input(0).has_rank() || !c.input(1).has_rank()) return absl::OkStatus();
  absl::StatusOr<PartialShape> shape = ShapeContext::Broadcast(c.input(0), c.input(1));
  if (!shape.ok()) return ScalarShape(c);
  // Unknown sizes may turn out not to fit: then the output is a scalar.
  if (c.input(0).IsFullyKnown() && c.input(1).IsFullyKnown()) c.set_output(0, *std::move(shape));
  return absl::OkStatus();
}

template <typename Op, bool kWhenUnfit, typename... Ts>
void RegisterEquality(OpLibrary& lib, absl::string_view op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeEquality<elementwise_internal::kDef<Op, ComputingT<Ts>>, kWhenUnfit>).template Type<Ts>("T"), ...);
}

template <typename Op, bool kWhenUnfit>
void RegisterEqualityOp(OpLibrary& lib, const std::string& op) {
  lib.schemas.Add(op + "(x: T, y: T) -> z: bool", "T: type; incompatible_shape_error: bool = true")
      .Commutative().Shape(EqualityShape).Cost(ElementwiseCost<1>);
  RegisterEquality<Op, kWhenUnfit>(lib, op, FloatTypes());
  RegisterEquality<Op, kWhenUnfit>(lib, op, SignedTypes());
  RegisterEquality<Op, kWhenUnfit>(lib, op, UnsignedTypes());
  RegisterEquality<Op, kWhenUnfit>(lib, op, ComplexTypes());
  RegisterEquality<Op, kWhenUnfit>(lib, op, QuantizedTypes());
  RegisterEquality<Op, kWhenUnfit>(lib, op, TypeList<bool>());
  lib.kernels.Add(op, "cpu", &MakeEquality<kCompareStrings<!kWhenUnfit>, kWhenUnfit>).template Type<std::string>("T");
}

}  // namespace

void RegisterEqualityOps(OpLibrary& lib) {
  RegisterEqualityOp<EqualOp, /*kWhenUnfit=*/false>(lib, "Equal");
  RegisterEqualityOp<NotEqualOp, /*kWhenUnfit=*/true>(lib, "NotEqual");
}

}  // namespace thalweg::math
