#include "thalweg/devices/sim/sim_device.h"

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "thalweg/devices/sim/sim_allocator.h"
#include "thalweg/devices/sim/sim_engine.h"
#include "thalweg/devices/sim/sim_memory.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

class SimDevice final : public Device {
 public:
  SimDevice(DeviceName name, std::shared_ptr<SimMemory> memory, std::shared_ptr<MemoryBudget> budget)
      : Device(std::move(name), "sim"),
        memory_(std::move(memory)),
        allocator_(this->name().ToShortString(), memory_, std::move(budget)),
        engine_(absl::StrCat("sim:", this->name().ToShortString())) {}

  Allocator& allocator() override { return allocator_; }
  MemoryKind memory() const override { return MemoryKind::kDevice; }
  void Launch(absl::AnyInvocable<void()> work) override { engine_.Submit(std::move(work)); }
  absl::Status Synchronize() override { return engine_.Synchronize(); }

  void CopyFromHost(Tensor host, int32_t node_id, CopyDone done) override {
    engine_.Submit([this, host = std::move(host), node_id, done = std::move(done)]() mutable {
      done(CopiedFromHost(host, node_id));
    });
  }

  void CopyToHost(Tensor device, Allocator& host_allocator, int32_t node_id, CopyDone done) override {
    engine_.Submit([this, device = std::move(device), &host_allocator, node_id, done = std::move(done)]() mutable {
      done(CopiedToHost(device, host_allocator, node_id));
    });
  }

  void* KernelPointer(void* device_pointer) const override {
    return memory_->Contains(device_pointer) ? memory_->Alias(device_pointer) : device_pointer;
  }

 private:
  absl::StatusOr<Tensor> CopiedFromHost(const Tensor& host, int32_t node_id) {
    THALWEG_RETURN_IF_ERROR(CheckCopyable(host));
    if (host.memory() != MemoryKind::kHost) return NotThere(host, "host memory");
    THALWEG_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(host.dtype(), host.shape(), allocator_, node_id));
    std::memcpy(memory_->Alias(copy.raw()), host.raw(), static_cast<size_t>(host.bytes()));
    return copy;
  }

  absl::StatusOr<Tensor> CopiedToHost(const Tensor& device, Allocator& host_allocator, int32_t node_id) {
    THALWEG_RETURN_IF_ERROR(CheckCopyable(device));
    if (!memory_->Contains(device.raw())) return NotThere(device, "the memory of this device");
    THALWEG_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(device.dtype(), device.shape(), host_allocator, node_id));
    std::memcpy(copy.mutable_raw(), memory_->Alias(device.raw()), static_cast<size_t>(device.bytes()));
    return copy;
  }

  absl::Status CheckCopyable(const Tensor& tensor) const {
    if (IsPlainMemory(tensor.dtype())) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("a tensor ", DTypeName(tensor.dtype()), tensor.shape().ToString(),
                                                   " cannot be copied between host and ", name().ToShortString(),
                                                   ": its elements are not plain memory"));
  }

  absl::Status NotThere(const Tensor& tensor, absl::string_view place) const {
    return absl::InvalidArgumentError(absl::StrCat("the tensor ", DTypeName(tensor.dtype()), tensor.shape().ToString(),
                                                   " to be copied for ", name().ToShortString(), " is not in ", place));
  }

  const std::shared_ptr<SimMemory> memory_;
  SimAllocator allocator_;
  SimEngine engine_;  // last: its thread uses all of the above until it is joined
};

}  // namespace

absl::StatusOr<std::shared_ptr<Device>> MakeSimDevice(DeviceName name, const SimOptions& options,
                                                      std::shared_ptr<MemoryBudget> budget) {
  THALWEG_ASSIGN_OR_RETURN(std::shared_ptr<SimMemory> memory, SimMemory::Make(options.memory_bytes));
  return std::shared_ptr<Device>(
      std::make_shared<SimDevice>(std::move(name), std::move(memory), std::move(budget)));
}

}  // namespace thalweg
