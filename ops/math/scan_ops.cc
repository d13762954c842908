// Cumsum, Cumprod: running sums and products along an axis.
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/arithmetic.h"
#include "thalweg/ops/math/axis_layout.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

// Lanes that are scanned side by side.
constexpr int64_t kLanes = 256;

// What is carried along an axis of elements of T. Floats are rounded to T at each step, as TensorFlow does: the results are
// the same bits. Integers wrap around in unsigned arithmetic.
template <typename T>
struct CarriedBy {
  using type = std::conditional_t<std::is_integral_v<T>, std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>, T>;
};

struct SumScan {
  template <typename A> static A Start() { return A(0); }
  template <typename A> static A Step(A a, A x) { return a + x; }
};
struct ProductScan {
  template <typename A> static A Start() { return A(1); }
  template <typename A> static A Step(A a, A x) { return WrappingMul(a, x); }
};

template <typename Op, typename T>
class ScanKernel final : public Kernel {
 public:
  explicit ScanKernel(const KernelInit& init)
      : exclusive_(init.Attr<bool>("exclusive").value_or(false)), reverse_(init.Attr<bool>("reverse").value_or(false)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    THALWEG_ASSIGN_OR_RETURN(const int64_t axis, ReadAxis(ctx, 1));
    THALWEG_ASSIGN_OR_RETURN(const AxisLayout layout, LayoutAt(shape, axis));
    const T* in = static_cast<const T*>(ctx.input(0).raw());
    THALWEG_ASSIGN_OR_RETURN(Tensor * tensor, ctx.ForwardOrAllocateOutput({0}, 0, shape));
    T* out = static_cast<T*>(tensor->mutable_raw());
    if (shape.num_elements() == 0) return absl::OkStatus();
    ctx.ParallelFor(layout.lanes(), static_cast<double>(layout.size), [&](int64_t begin, int64_t end) {
      ForEachLanePiece(layout, begin, end, kLanes, [&](int64_t first, int64_t, int64_t count) {
        if (layout.inner == 1) ScanRow(in + first, out + first, layout.size);
        else ScanLanes(in + first, out + first, layout, count);
      });
    });
    return absl::OkStatus();
  }

 private:
  using A = typename CarriedBy<T>::type;

  void ScanRow(const T* in, T* out, int64_t n) const {
    A carried = Op::template Start<A>();
    const int64_t step = reverse_ ? -1 : 1;
    for (int64_t k = reverse_ ? n - 1 : 0; k >= 0 && k < n; k += step) {
      const A before = carried;
      carried = Op::Step(before, static_cast<A>(in[k]));
      out[k] = static_cast<T>(exclusive_ ? before : carried);
    }
  }

  void ScanLanes(const T* in, T* out, const AxisLayout& layout, int64_t count) const {
    A carried[kLanes];
    std::fill(carried, carried + count, Op::template Start<A>());
    for (int64_t step = 0; step < layout.size; ++step) {
      const int64_t row = (reverse_ ? layout.size - 1 - step : step) * layout.inner;
      for (int64_t k = 0; k < count; ++k) {
        const A before = carried[k];
        carried[k] = Op::Step(before, static_cast<A>(in[row + k]));
        out[row + k] = static_cast<T>(exclusive_ ? before : carried[k]);
      }
    }
  }

  const bool exclusive_;
  const bool reverse_;
};

template <typename Op, typename... Ts>
void RegisterTypes(OpLibrary& lib, const std::string& op, TypeList<Ts...>) {
  (lib.kernels.Add(op, "cpu", &MakeKernel<ScanKernel<Op, Ts>>).template Type<Ts>("T").HostMemory("axis"), ...);
}

template <typename Op>
void RegisterScan(OpLibrary& lib, const std::string& op) {
  lib.schemas.Add(op + "(x: T, axis: Tidx) -> out: T",
                  "exclusive: bool = false; reverse: bool = false; T: numbertype; Tidx: {int32, int64} = int32")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterTypes<Op>(lib, op, FloatTypes());
  RegisterTypes<Op>(lib, op, SignedTypes());
  RegisterTypes<Op>(lib, op, UnsignedTypes());
  RegisterTypes<Op>(lib, op, ComplexTypes());
}

}  // namespace

void RegisterScanOps(OpLibrary& lib) {
  RegisterScan<SumScan>(lib, "Cumsum");
  RegisterScan<ProductScan>(lib, "Cumprod");
}

}  // namespace thalweg::math
