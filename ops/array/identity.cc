// Ops that pass values on, or nothing at all.
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"

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
  lib.schemas.Add("NoOp()").Shape(NoOutputs).Cost(NoCost).Role(OpRole::kNoOp);
  for (const char* op : {"Identity", "StopGradient", "PreventGradient", "Snapshot", "IdentityN"}) {
    lib.kernels.Add(op, "cpu", MakeKernel<IdentityKernel>);
  }
  lib.kernels.Add("NoOp", "cpu", MakeKernel<NoOpKernel>);
}

}  // namespace thalweg
