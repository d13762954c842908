// Declarations. The shapes of results are left unknown until the nodes of the bodies are in the graph: what a file says of
// them (`output_shapes`) is not checked by anybody.
#include "thalweg/ops/functional/functional_ops.h"

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/functional/register.h"

namespace thalweg {
namespace {

// Tells placement where a `_Call` may be. The executor itself does its work, and lowering leaves none of the other ops.
class CallKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext&) override { return absl::InternalError("a node of functional form was run as a kernel"); }
};

constexpr char kCallAttrs[] =
    "Tin: list(type) >= 0; Tout: list(type) >= 0; f: func; config: string = \"\"; config_proto: string = \"\"; executor_type: string = \"\"";
constexpr char kLoopAttrs[] = "T: list(type) >= 0; cond: func; body: func; output_shapes: list(shape) = []; parallel_iterations: int = 10";

void DeclareCalls(OpRegistry& r) {
  r.Add("PartitionedCall(args: Tin) -> output: Tout", kCallAttrs).Shape(UnknownShape);
  r.Add("StatefulPartitionedCall(args: Tin) -> output: Tout", kCallAttrs).Shape(UnknownShape).Stateful();
  r.Add("RemoteCall(target: string, args: Tin) -> output: Tout", "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func")
      .Shape(UnknownShape)
      .Stateful();
  r.Add("SymbolicGradient(input: Tin) -> output: Tout", "Tin: list(type) >= 1; Tout: list(type) >= 1; f: func").Shape(UnknownShape);
  // What lowering leaves of a call that it cannot replace. all_stateful: which nodes of the body run although no result
  // needs them.
  r.Add("_Call(args: Tin) -> output: Tout", "Tin: list(type); Tout: list(type); f: func; all_stateful: bool = true")
      .Shape(UnknownShape)
      .Stateful();
}

void DeclareControlFlow(OpRegistry& r) {
  for (const bool stateless : {false, true}) {
    const char* prefix = stateless ? "Stateless" : "";
    OpSchemaBuilder conditional = r.Add(absl::StrCat(prefix, "If(cond: Tcond, input: Tin) -> output: Tout"),
                                        "Tcond: type; Tin: list(type) >= 0; Tout: list(type) >= 0; then_branch: func; else_branch: func; "
                                        "output_shapes: list(shape) = []");
    OpSchemaBuilder choice = r.Add(absl::StrCat(prefix, "Case(branch_index: int32, input: Tin) -> output: Tout"),
                                   "Tin: list(type) >= 0; Tout: list(type) >= 0; branches: list(func) >= 1; output_shapes: list(shape) = []");
    OpSchemaBuilder loop = r.Add(absl::StrCat(prefix, "While(input: T) -> output: T"), kLoopAttrs);
    for (OpSchemaBuilder* op : {&conditional, &choice, &loop}) {
      op->Shape(UnknownShape);
      if (!stateless) op->Stateful();
    }
  }
}

}  // namespace

void RegisterFunctionalOps(OpLibrary& lib) {
  DeclareCalls(lib.schemas);
  DeclareControlFlow(lib.schemas);
  lib.kernels.Add("_Call", "cpu", MakeKernel<CallKernel>);
  RegisterToBool(lib);
  RegisterFail(lib);
  RegisterDeviceIndex(lib);
}

}  // namespace thalweg
