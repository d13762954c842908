// Abort: ends the step, not the process, which belongs to whoever uses the library.
#include <string>

#include "absl/strings/str_cat.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/control/control_ops.h"

namespace thalweg {
namespace {

class AbortKernel : public Kernel {
 public:
  explicit AbortKernel(const KernelInit& init) : message_(init.node().node_attrs().GetOr<std::string>("error_msg", "")) {}

  absl::Status Compute(KernelContext&) override {
    return absl::AbortedError(message_.empty() ? "the graph asked to abort" : absl::StrCat("the graph asked to abort: ", message_));
  }

 private:
  const std::string message_;
};

}  // namespace

void RegisterAbortOp(OpLibrary& lib) {
  lib.schemas.Add("Abort()", "error_msg: string = \"\"; exit_without_error: bool = false").Shape(NoOutputs).Cost(NoCost);
  lib.kernels.Add("Abort", "cpu", MakeKernel<AbortKernel>);
}

}  // namespace thalweg
