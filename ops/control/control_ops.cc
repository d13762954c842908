// Declarations of the control-flow ops. The executor does their work by role; what is registered as a kernel here tells
// placement where they may be and which of their arguments stay in host memory.
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/control/control_ops.h"
#include "thalweg/ops/control/register.h"

namespace thalweg {
namespace {

class RoleKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext&) override { return absl::InternalError("a control-flow node was run as a kernel"); }
};

absl::Status SwitchShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, c.input(0));
    if (c.input_value(0)) c.set_output_value(i, *c.input_value(0));
  }
  return absl::OkStatus();
}

// What two shapes have in common: a Merge gives one or the other.
PartialShape CommonShape(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return PartialShape();
  PartialShape common = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a.dim(i) != b.dim(i)) common.set_dim(i, kUnknownDim);
  }
  return common;
}

absl::Status MergeShape(ShapeContext& c) {
  PartialShape common = c.num_inputs() > 0 ? c.input(0) : PartialShape();
  for (int i = 1; i < c.num_inputs(); ++i) common = CommonShape(common, c.input(i));
  c.set_output(0, std::move(common));
  c.set_output(1, PartialShape::Known(Shape()));
  return absl::OkStatus();
}

absl::Status LoopCondShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(0));
  return UnchangedShape(c);
}

constexpr char kEnterAttrs[] = "T: type; frame_name: string; is_constant: bool = false; parallel_iterations: int = 10";

void DeclareConditionals(OpRegistry& r) {
  r.Add("Switch(data: T, pred: bool) -> (output_false: T, output_true: T)", "T: type").Shape(SwitchShape).Cost(NoCost).Role(OpRole::kSwitch);
  r.Add("RefSwitch(data: Ref(T), pred: bool) -> (output_false: Ref(T), output_true: Ref(T))", "T: type")
      .Shape(SwitchShape)
      .Cost(NoCost)
      .AllowsUninitializedInput()
      .Role(OpRole::kSwitch);
  r.Add("_SwitchN(data: T, output_index: int32) -> outputs: num_outs*T", "num_outs: int >= 1; T: type")
      .Shape(SwitchShape)
      .Cost(NoCost)
      .Role(OpRole::kSwitch);
  r.Add("Merge(inputs: N*T) -> (output: T, value_index: int32)", "T: type; N: int >= 1").Shape(MergeShape).Cost(NoCost).Role(OpRole::kMerge);
  r.Add("RefMerge(inputs: Ref(N*T)) -> (output: Ref(T), value_index: int32)", "T: type; N: int >= 1")
      .Shape(MergeShape)
      .Cost(NoCost)
      .Role(OpRole::kMerge);
  r.Add("ControlTrigger()").Shape(NoOutputs).Cost(NoCost).Role(OpRole::kControlTrigger);
}

void DeclareLoops(OpRegistry& r) {
  r.Add("Enter(data: T) -> output: T", kEnterAttrs).Shape(UnchangedShape).Cost(NoCost).Role(OpRole::kEnter);
  r.Add("RefEnter(data: Ref(T)) -> output: Ref(T)", kEnterAttrs).Shape(UnchangedShape).Cost(NoCost).Role(OpRole::kEnter);
  r.Add("Exit(data: T) -> output: T", "T: type").Shape(UnchangedShape).Cost(NoCost).Role(OpRole::kExit);
  r.Add("RefExit(data: Ref(T)) -> output: Ref(T)", "T: type").Shape(UnchangedShape).Cost(NoCost).Role(OpRole::kExit);
  r.Add("NextIteration(data: T) -> output: T", "T: type").Shape(UnchangedShape).Cost(NoCost).Role(OpRole::kNextIteration);
  r.Add("RefNextIteration(data: Ref(T)) -> output: Ref(T)", "T: type").Shape(UnchangedShape).Cost(NoCost).Role(OpRole::kNextIteration);
  r.Add("LoopCond(input: bool) -> output: bool").Shape(LoopCondShape).Cost(NoCost).Role(OpRole::kLoopCond);
}

}  // namespace

void RegisterControlOps(OpLibrary& lib) {
  DeclareConditionals(lib.schemas);
  DeclareLoops(lib.schemas);
  for (const char* backend : {"cpu", "sim"}) {
    lib.kernels.Add("Switch", backend, MakeKernel<RoleKernel>).HostMemory("pred");
    lib.kernels.Add("_SwitchN", backend, MakeKernel<RoleKernel>).HostMemory("output_index");
    lib.kernels.Add("Merge", backend, MakeKernel<RoleKernel>).HostMemory("value_index");
    lib.kernels.Add("LoopCond", backend, MakeKernel<RoleKernel>).HostMemory("input").HostMemory("output");
    for (const char* op : {"Enter", "Exit", "NextIteration", "ControlTrigger"}) lib.kernels.Add(op, backend, MakeKernel<RoleKernel>);
  }
  for (const char* op : {"RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefNextIteration"}) {
    lib.kernels.Add(op, "cpu", MakeKernel<RoleKernel>);
  }
  RegisterReferenceChoiceOps(lib);
  RegisterAbortOp(lib);
}

}  // namespace thalweg
