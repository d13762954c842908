#include "thalweg/devices/cpu/cpu_device.h"

#include <utility>

namespace thalweg {
namespace {

class CpuDevice final : public Device {
 public:
  CpuDevice(DeviceName name, std::shared_ptr<MemoryBudget> budget)
      : Device(std::move(name), "cpu"),
        allocator_(MakeHostAllocator(this->name().ToShortString(), std::move(budget))) {}

  Allocator& allocator() override { return *allocator_; }
  MemoryKind memory() const override { return MemoryKind::kHost; }

 private:
  const std::shared_ptr<Allocator> allocator_;
};

}  // namespace

std::shared_ptr<Device> MakeCpuDevice(DeviceName name, std::shared_ptr<MemoryBudget> budget) {
  return std::make_shared<CpuDevice>(std::move(name), std::move(budget));
}

}  // namespace thalweg
