// Ops that pass values on, or nothing at all.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/common/strided_copy.h"

namespace thalweg {
namespace {

// Output i is input i; buffers are shared, never copied.
class IdentityKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_outputs(); ++i) ctx.SetOutput(i, ctx.TakeInput(i));
    return absl::OkStatus();
  }
};

// A copy with a buffer of its own, which later writes to the input do not reach.
class CopyKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    StridedCopy(ctx, in.dtype(), {{in.num_elements(), 1, 1}}, in.raw(), out->mutable_raw());
    return absl::OkStatus();
  }
};

class NoOpKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext&) override { return absl::OkStatus(); }
};

absl::Status IdentityNShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    c.set_output(i, c.input(i));
    if (c.input_value(i)) c.set_output_value(i, *c.input_value(i));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterIdentityOps(OpLibrary& lib) {
  lib.schemas.Add("Identity(input: T) -> output: T", "T: type").Shape(UnchangedShape).Cost(NoCost);
  lib.schemas.Add("StopGradient(input: T) -> output: T", "T: type").Shape(UnchangedShape).Cost(NoCost);
  lib.schemas.Add("PreventGradient(input: T) -> output: T", "T: type; message: string = \"\"")
      .Shape(UnchangedShape)
      .Cost(NoCost);
  lib.schemas.Add("Snapshot(input: T) -> output: T", "T: type").Shape(UnchangedShape).Cost(NoCost);
  lib.schemas.Add("IdentityN(input: T) -> output: T", "T: list(type) >= 1").Shape(IdentityNShape).Cost(NoCost);
  lib.schemas.Add("GuaranteeConst(input: T) -> output: T", "T: type").Stateful().Shape(UnchangedShape).Cost(NoCost);
  lib.schemas.Add("DeepCopy(x: T) -> y: T", "T: type").Stateful().Shape(UnchangedShape).Cost(CopyCost);
  for (const char* op : {"Copy", "CopyHost"}) {
    lib.schemas
        .Add(absl::StrCat(op, "(input: T) -> output: T"),
             "T: type; tensor_name: string = \"\"; debug_ops_spec: list(string) = []")
        .AllowsUninitializedInput()
        .Shape(UnchangedShape)
        .Cost(CopyCost);
  }
  lib.schemas.Add("NoOp()").Shape(NoOutputs).Cost(NoCost).Role(OpRole::kNoOp);
  for (const char* op : {"Identity", "StopGradient", "PreventGradient", "Snapshot", "IdentityN", "GuaranteeConst"}) {
    lib.kernels.Add(op, "cpu", MakeKernel<IdentityKernel>);
  }
  for (const char* op : {"DeepCopy", "Copy", "CopyHost"}) lib.kernels.Add(op, "cpu", MakeKernel<CopyKernel>);
  lib.kernels.Add("NoOp", "cpu", MakeKernel<NoOpKernel>);
}

}  // namespace thalweg
