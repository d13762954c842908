// Ops that are special functions: Lgamma, Digamma, Erfc, Erfinv, Ndtri, Bessel functions, Igamma, Betainc, Zeta and more. Floats are
// computed in double.
#include <math.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"
#include "thalweg/ops/math/special_functions.h"

namespace thalweg::math {
namespace {

// A function of one or two doubles as an elementwise op.
template <double (*kFunction)(double)>
struct UnaryFunction {
  static constexpr double kNanos = 100.0;
  template <typename T> static T Apply(T x) { return static_cast<T>(kFunction(static_cast<double>(x))); }
};
template <double (*kFunction)(double, double)>
struct BinaryFunction {
  static constexpr double kNanos = 200.0;
  template <typename T> static T Apply(T a, T b) { return static_cast<T>(kFunction(static_cast<double>(a), static_cast<double>(b))); }
};

double ErfcOf(double x) { return std::erfc(x); }
template <int kOrder> double I(double x) { return BesselI(kOrder, x); }
template <int kOrder> double ScaledI(double x) { return ScaledBesselI(kOrder, x); }
template <int kOrder> double K(double x) { return BesselK(kOrder, x); }
template <int kOrder> double ScaledK(double x) { return ScaledBesselK(kOrder, x); }
double J0(double x) { return ::j0(x); }
double J1(double x) { return ::j1(x); }
// Without the errors that the C library reports at 0 and below.
double Y0(double x) { return x > 0 ? ::y0(x) : x == 0 ? -HUGE_VAL : NAN; }
double Y1(double x) { return x > 0 ? ::y1(x) : x == 0 ? -HUGE_VAL : NAN; }

constexpr char kFloats[] = "T: {bfloat16, half, float, double}";

template <double (*kFunction)(double), typename... Ts>
void RegisterUnary(OpLibrary& lib, absl::string_view op) {
  lib.schemas.Add(absl::StrCat(op, "(x: T) -> y: T"), kFloats).Shape(UnchangedShape).Cost(ElementwiseCost<50>);
  RegisterElementwise<UnaryFunction<kFunction>, Ts...>(lib, op);
}

template <double (*kFunction)(double, double)>
void RegisterBinary(OpLibrary& lib, absl::string_view signature, absl::string_view op, absl::string_view types) {
  lib.schemas.Add(absl::StrCat(op, signature), types).Shape(BroadcastShape).Cost(ElementwiseCost<100>);
  RegisterElementwise<BinaryFunction<kFunction>, float, double>(lib, op);
}

// ---- Betainc

template <typename T>
void BetaincLoop(const void* const* in, const int64_t* strides, void* out, int64_t n, LoopState&) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* x = static_cast<const T*>(in[2]);
  T* o = static_cast<T*>(out);
  for (int64_t k = 0; k < n; ++k) {
    o[k] = static_cast<T>(RegularizedBeta(static_cast<double>(a[k * strides[0]]), static_cast<double>(b[k * strides[1]]),
                                          static_cast<double>(x[k * strides[2]])));
  }
}
template <typename T>
constexpr ElementwiseDef kBetainc = {.loop = &BetaincLoop<T>,
                                     .num_inputs = 3,
                                     .input_types = {DTypeOf<T>::value, DTypeOf<T>::value, DTypeOf<T>::value},
                                     .output_type = DTypeOf<T>::value,
                                     .nanos_per_element = 300};

// Scalars broadcast, nothing else does (L19).
template <typename T>
class BetaincKernel final : public Kernel {
 public:
  explicit BetaincKernel(const KernelInit& init) : elementwise_(kBetainc<T>, init.node()) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape* shape = nullptr;
    for (int i = 0; i < 3; ++i) {
      const Shape& own = ctx.input(i).shape();
      if (own.rank() == 0) continue;
      if (shape != nullptr && own != *shape) {
        return absl::InvalidArgumentError(absl::StrCat("a, b and x must be scalars or have one shape, but there are ",
                                                       shape->ToString(), " and ", own.ToString()));
      }
      shape = &own;
    }
    return elementwise_.Compute(ctx);
  }

 private:
  ElementwiseKernel elementwise_;
};

absl::Status BetaincShape(ShapeContext& c) {
  PartialShape merged;
  bool scalars_only = true;
  for (int i = 0; i < 3; ++i) {
    const PartialShape& own = c.input(i);
    scalars_only &= own.has_rank() && own.rank() == 0;
    if (!own.has_rank() || own.rank() == 0) continue;
    THALWEG_ASSIGN_OR_RETURN(merged, ShapeContext::Merge(merged, own));
  }
  c.set_output(0, scalars_only ? PartialShape::Known(Shape()) : std::move(merged));
  return absl::OkStatus();
}

void RegisterBetainc(OpLibrary& lib) {
  lib.schemas.Add("Betainc(a: T, b: T, x: T) -> z: T", "T: {float, double}").Shape(BetaincShape).Cost(ElementwiseCost<200>);
  lib.kernels.Add("Betainc", "cpu", &MakeKernel<BetaincKernel<float>>).Type<float>("T");
  lib.kernels.Add("Betainc", "cpu", &MakeKernel<BetaincKernel<double>>).Type<double>("T");
}

}  // namespace

void RegisterSpecialOps(OpLibrary& lib) {
  RegisterUnary<ErfcOf, half, bfloat16, float, double>(lib, "Erfc");
  RegisterUnary<LogGamma, half, float, double>(lib, "Lgamma");
  RegisterUnary<Digamma, half, float, double>(lib, "Digamma");
  RegisterUnary<InverseErf, float, double>(lib, "Erfinv");
  RegisterUnary<InverseNormal, float, double>(lib, "Ndtri");
  RegisterUnary<Dawson, float, double>(lib, "Dawsn");
  RegisterUnary<FresnelSine, float, double>(lib, "FresnelSin");
  RegisterUnary<FresnelCosine, float, double>(lib, "FresnelCos");
  RegisterUnary<Spence, float, double>(lib, "Spence");
  RegisterUnary<ExponentialIntegral, float, double>(lib, "Expint");

  RegisterUnary<I<0>, half, float, double>(lib, "BesselI0");
  RegisterUnary<I<1>, half, float, double>(lib, "BesselI1");
  RegisterUnary<ScaledI<0>, half, float, double>(lib, "BesselI0e");
  RegisterUnary<ScaledI<1>, half, float, double>(lib, "BesselI1e");
  RegisterUnary<K<0>, half, float, double>(lib, "BesselK0");
  RegisterUnary<K<1>, half, float, double>(lib, "BesselK1");
  RegisterUnary<ScaledK<0>, half, float, double>(lib, "BesselK0e");
  RegisterUnary<ScaledK<1>, half, float, double>(lib, "BesselK1e");
  RegisterUnary<J0, half, float, double>(lib, "BesselJ0");
  RegisterUnary<J1, half, float, double>(lib, "BesselJ1");
  RegisterUnary<Y0, half, float, double>(lib, "BesselY0");
  RegisterUnary<Y1, half, float, double>(lib, "BesselY1");

  RegisterBinary<RegularizedGammaP>(lib, "(a: T, x: T) -> z: T", "Igamma", kFloats);
  RegisterBinary<RegularizedGammaQ>(lib, "(a: T, x: T) -> z: T", "Igammac", kFloats);
  RegisterBinary<HurwitzZeta>(lib, "(x: T, q: T) -> z: T", "Zeta", "T: {float, double}");
  RegisterBinary<Polygamma>(lib, "(a: T, x: T) -> z: T", "Polygamma", "T: {float, double}");
  RegisterBetainc(lib);
}

}  // namespace thalweg::math
