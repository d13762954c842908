// The host as a device (backend "cpu"): host memory, no queue of its own; its kernels run on the session's threads.
#pragma once

#include <memory>

#include "thalweg/devices/allocator.h"
#include "thalweg/devices/device.h"

namespace thalweg {

// Requires a full name. The device's allocator is charged to `budget`, which must not be null.
std::shared_ptr<Device> MakeCpuDevice(DeviceName name, std::shared_ptr<MemoryBudget> budget);

}  // namespace thalweg
