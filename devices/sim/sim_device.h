// The simulated accelerator (backend "sim"): behaves like a device with memory and streams of its own, on any machine.
//
// Its memory faults when the host touches it (sim_memory.h); its work and copies run asynchronously, in order, on one
// engine thread (sim_engine.h) that starts with the first use. It never pretends to be fast.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "thalweg/devices/device.h"

namespace thalweg {

struct SimOptions {
  int64_t memory_bytes = int64_t{1} << 30;  // reserved as addresses; pages are taken when written
};

// Requires a full name. Its memory is charged to `budget`, if there is one, as well. ResourceExhausted if the system
// refuses the addresses.
absl::StatusOr<std::shared_ptr<Device>> MakeSimDevice(DeviceName name, const SimOptions& options = {},
                                                      std::shared_ptr<MemoryBudget> budget = nullptr);

}  // namespace thalweg
