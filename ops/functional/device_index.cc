// _DeviceIndex: which device the target of a remote call means, for lowering to choose the call of that device.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/graph/cost.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/functional/functional_ops.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {
namespace {

class DeviceIndexKernel : public Kernel {
 public:
  absl::Status Compute(KernelContext& ctx) override {
    const Tensor& target = ctx.input(0);
    if (target.num_elements() != 1) {
      return absl::InvalidArgumentError(absl::StrCat("the target of a remote call must be a scalar but has shape ", target.shape().ToString()));
    }
    const std::vector<std::string> devices = ctx.node().node_attrs().GetOr<std::vector<std::string>>("devices", {});
    THALWEG_ASSIGN_OR_RETURN(const int32_t index, Find(target.flat<std::string>()[0], devices));
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    out->mutable_flat<int32_t>()[0] = index;
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<int32_t> Find(const std::string& target, const std::vector<std::string>& devices) {
    const absl::StatusOr<DeviceName> wanted = DeviceName::ParseLocalOrFull(target);
    for (size_t i = 0; wanted.ok() && i < devices.size(); ++i) {
      THALWEG_ASSIGN_OR_RETURN(const DeviceName device, DeviceName::ParseLocalOrFull(devices[i]));
      if (wanted->Matches(device)) return static_cast<int32_t>(i);
    }
    return absl::InternalError(absl::StrCat("the target '", target, "' of a remote call is no device of this session (there are ",
                                            absl::StrJoin(devices, ", "), ")"));
  }
};

}  // namespace

void RegisterDeviceIndex(OpLibrary& lib) {
  lib.schemas.Add("_DeviceIndex(target: string) -> index: int32", "devices: list(string)").Shape(ScalarShape).Cost(NoCost);
  lib.kernels.Add("_DeviceIndex", "cpu", MakeKernel<DeviceIndexKernel>);
}

}  // namespace thalweg
