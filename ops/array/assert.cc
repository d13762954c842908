// Assert: fails the step if its condition is false.
#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/array/array_ops.h"
#include "thalweg/ops/common/int_args.h"

namespace thalweg {
namespace {

constexpr int64_t kMostPrinted = 1000;  // elements per tensor, however many the node asks for

class AssertKernel : public Kernel {
 public:
  explicit AssertKernel(const KernelInit& init) {
    const int64_t summarize = init.node().node_attrs().GetOr<int64_t>("summarize", 3);
    printed_ = summarize < 0 || summarize > kMostPrinted ? kMostPrinted : summarize;
  }

  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& condition = ctx.input(0);
    THALWEG_RETURN_IF_ERROR(RequireScalar(condition, "condition"));
    if (condition.flat<bool>()[0]) return absl::OkStatus();
    std::string message = "assertion failed:";
    for (int i = 1; i < ctx.num_inputs(); ++i) absl::StrAppend(&message, " ", ctx.input(i).ToString(printed_));
    return absl::InvalidArgumentError(message);
  }

 private:
  int64_t printed_;
};

}  // namespace

void RegisterAssert(OpLibrary& lib) {
  lib.schemas.Add("Assert(condition: bool, data: T)", "T: list(type) >= 1; summarize: int = 3")
      .Shape(NoOutputs)
      .Cost(NoCost)
      .Stateful();
  lib.kernels.Add("Assert", "cpu", MakeKernel<AssertKernel>).HostMemory("condition").HostMemory("data");
}

}  // namespace thalweg
