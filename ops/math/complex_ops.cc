// Between complex numbers and their parts: Complex, Real, Imag, ComplexAbs, Angle, Conj.
#include <cmath>
#include <complex>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct ComplexOp {
  template <typename T> static std::complex<T> Apply(T re, T im) { return {re, im}; }
};
struct RealOp {
  template <typename T> static T Apply(std::complex<T> z) { return z.real(); }
};
struct ImagOp {
  template <typename T> static T Apply(std::complex<T> z) { return z.imag(); }
};
struct ComplexAbsOp {
  static constexpr double kNanos = 6.0;
  template <typename T> static T Apply(std::complex<T> z) { return std::hypot(z.real(), z.imag()); }
};
struct AngleOp {
  static constexpr double kNanos = 20.0;
  template <typename T> static T Apply(std::complex<T> z) { return std::atan2(z.imag(), z.real()); }
};
struct ConjOp {
  template <typename T> static std::complex<T> Apply(std::complex<T> z) { return std::conj(z); }
};

// A kernel for single and one for double precision, which T and Tout must agree on.
template <typename Op, typename From, typename To>
void AddKernel(OpLibrary& lib, absl::string_view op) {
  lib.kernels.Add(op, "cpu", &MakeElementwise<kElementwise<Op, From>>).template Type<From>("T").template Type<To>("Tout");
}

template <typename Op>
void RegisterPart(OpLibrary& lib, absl::string_view op, absl::string_view input, absl::string_view output) {
  lib.schemas.Add(absl::StrCat(op, "(", input, ": T) -> ", output, ": Tout"),
                  "T: {complex64, complex128} = complex64; Tout: {float, double} = float")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  AddKernel<Op, std::complex<float>, float>(lib, op);
  AddKernel<Op, std::complex<double>, double>(lib, op);
}

}  // namespace

void RegisterComplexOps(OpLibrary& lib) {
  lib.schemas.Add("Complex(real: T, imag: T) -> out: Tout",
                  "T: {float, double} = float; Tout: {complex64, complex128} = complex64")
      .Shape(BroadcastShape).Cost(ElementwiseCost<1>);
  AddKernel<ComplexOp, float, std::complex<float>>(lib, "Complex");
  AddKernel<ComplexOp, double, std::complex<double>>(lib, "Complex");

  RegisterPart<RealOp>(lib, "Real", "input", "output");
  RegisterPart<ImagOp>(lib, "Imag", "input", "output");
  RegisterPart<ComplexAbsOp>(lib, "ComplexAbs", "x", "y");
  RegisterPart<AngleOp>(lib, "Angle", "input", "output");

  lib.schemas.Add("Conj(input: T) -> output: T", "T: {complex64, complex128, variant} = complex64")
      .Shape(UnchangedShape).Cost(ElementwiseCost<1>);
  RegisterElementwiseFor<ConjOp, ComplexTypes>(lib, "Conj");
}

}  // namespace thalweg::math
