// The complex kernels of the ops that transcendental_ops.cc declares.
#include <complex>

#include "thalweg/ops/common/elementwise_loops.h"
#include "thalweg/ops/math/register_internal.h"

namespace thalweg::math {
namespace {

struct Costly {
  static constexpr double kNanos = 20.0;
};
struct SqrtOp : Costly {
  template <typename T> static T Apply(T z) { return std::sqrt(z); }
};
struct RsqrtOp : Costly {
  template <typename T> static T Apply(T z) { return T(1) / std::sqrt(z); }
};
struct ExpOp : Costly {
  template <typename T> static T Apply(T z) { return std::exp(z); }
};
struct LogOp : Costly {
  template <typename T> static T Apply(T z) { return std::log(z); }
};
struct TanhOp : Costly {
  template <typename T> static T Apply(T z) { return std::tanh(z); }
};
struct SigmoidOp : Costly {
  template <typename T> static T Apply(T z) { return T(1) / (T(1) + std::exp(-z)); }
};

template <typename Op>
void RegisterComplex(OpLibrary& lib, absl::string_view op) { RegisterElementwiseFor<Op, ComplexTypes>(lib, op); }

}  // namespace

void RegisterComplexTranscendentalOps(OpLibrary& lib) {
  RegisterComplex<SqrtOp>(lib, "Sqrt");
  RegisterComplex<RsqrtOp>(lib, "Rsqrt");
  RegisterComplex<ExpOp>(lib, "Exp");
  RegisterComplex<LogOp>(lib, "Log");
  RegisterComplex<TanhOp>(lib, "Tanh");
  RegisterComplex<SigmoidOp>(lib, "Sigmoid");
}

}  // namespace thalweg::math
