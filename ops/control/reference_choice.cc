// Kernels that hand references on, one of one (RefIdentity) or one of several (RefSelect).
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/control/control_ops.h"

namespace thalweg {
namespace {

class RefIdentityKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    ctx.output_value(0) = ctx.input_value(0);
    return absl::OkStatus();
  }
};

class RefSelectKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& index = ctx.input(0);
    if (index.shape().rank() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("index must be a scalar but has shape ", index.shape().ToString()));
    }
    const int32_t chosen = index.flat<int32_t>()[0];
    const int choices = ctx.num_inputs() - 1;
    if (chosen < 0 || chosen >= choices) {
      return absl::InvalidArgumentError(absl::StrCat("index ", chosen, " is not in [0, ", choices, ")"));
    }
    ctx.output_value(0) = ctx.input_value(1 + chosen);
    return absl::OkStatus();
  }
};

// The chosen one's shape is known where all are alike.
absl::Status RefSelectShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(0));
  PartialShape first = c.num_inputs() > 1 ? c.input(1) : PartialShape();
  for (int i = 2; i < c.num_inputs(); ++i) {
    if (c.input(i) != first) first = PartialShape();
  }
  c.set_output(0, std::move(first));
  return absl::OkStatus();
}

}  // namespace

void RegisterReferenceChoiceOps(OpLibrary& lib) {
  lib.schemas.Add("RefIdentity(input: Ref(T)) -> output: Ref(T)", "T: type").Shape(UnchangedShape).Cost(NoCost).AllowsUninitializedInput();
  lib.schemas.Add("RefSelect(index: int32, inputs: Ref(N*T)) -> output: Ref(T)", "T: type; N: int >= 1").Shape(RefSelectShape).Cost(NoCost);
  lib.kernels.Add("RefIdentity", "cpu", MakeKernel<RefIdentityKernel>);
  lib.kernels.Add("RefSelect", "cpu", MakeKernel<RefSelectKernel>);
}

}  // namespace thalweg
