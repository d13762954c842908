// _Fail: what lowering puts in the place of a call that cannot be made. Running it is the error.
#include <string>

#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/functional/functional_ops.h"

namespace thalweg {
namespace {

class FailKernel : public Kernel {
 public:
  // Reads the attributes of the node at hand, not those of the node that this kernel was first made for.
  absl::Status Compute(KernelContext& ctx) override {
    const NodeAttrs attrs = ctx.node().node_attrs();
    const int64_t code = attrs.GetOr<int64_t>("code", 0);
    const bool is_code = code > 0 && code <= static_cast<int64_t>(absl::StatusCode::kUnauthenticated);
    return absl::Status(is_code ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, attrs.GetOr<std::string>("message", ""));
  }
};

}  // namespace

void RegisterFail(OpLibrary& lib) {
  lib.schemas.Add("_Fail() -> output: Tout", "Tout: list(type); code: int; message: string").Shape(UnknownShape).Cost(NoCost).Stateful();
  for (const char* backend : {"cpu", "sim"}) lib.kernels.Add("_Fail", backend, MakeKernel<FailKernel>);
}

}  // namespace thalweg
