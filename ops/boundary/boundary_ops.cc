#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/boundary/register.h"

namespace thalweg {
namespace {

// These nodes have roles, so the executor does their work; the registration tells placement where they may be.
class RoleKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    return absl::InternalError("a boundary node was run as a kernel");
  }
};

// Pruning leaves the shape of a fed tensor, where known, in "_output_shapes".
absl::Status ArgShape(ShapeContext& c) {
  const std::vector<PartialShape> shapes = c.attrs().GetOr<std::vector<PartialShape>>("_output_shapes", {});
  if (shapes.size() == 1) c.set_output(0, shapes[0]);
  return absl::OkStatus();
}

}  // namespace

void RegisterBoundaryOps(OpLibrary& lib) {
  lib.schemas.Add("_Arg() -> output: T", "T: type; index: int >= 0").Shape(ArgShape).Cost(NoCost).Stateful().Role(OpRole::kArg);
  lib.schemas.Add("_Retval(input: T)", "T: type; index: int >= 0").Shape(NoOutputs).Cost(NoCost).Stateful().Role(OpRole::kRetval);
  lib.schemas
      .Add("_Send(tensor: T)",
           "T: type; pair: int >= 0")
      .Shape(NoOutputs)
      .Cost(NoCost)
      .Stateful()
      .Role(OpRole::kSend);
  lib.schemas
      .Add("_Recv() -> tensor: tensor_type",
           "tensor_type: type; pair: int >= 0")
      .Shape(UnknownShape)
      .Cost(CopyCost)
      .Stateful()
      .Role(OpRole::kRecv);
  for (const char* op : {"_Arg", "_Retval"}) lib.kernels.Add(op, "cpu", MakeKernel<RoleKernel>);
  for (const char* op : {"_Send", "_Recv"}) {
    for (const char* backend : {"cpu", "sim"}) lib.kernels.Add(op, backend, MakeKernel<RoleKernel>);
  }
}

}  // namespace thalweg
