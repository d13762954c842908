// Device: memory and work queue of one piece of hardware. CPU devices live in devices/cpu, the simulated accelerator in
// devices/sim. A device knows no graph; kernels for it are found by its backend name.
//
// Threading: all methods are thread-safe. Ownership: a session shares ownership of its devices; a device outlives every
// buffer of its allocator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "thalweg/devices/allocator.h"
#include "thalweg/devices/tensor.h"
#include "thalweg/proto/device_name.h"

namespace thalweg {

class Device {
 public:
  virtual ~Device() = default;

  // Full name: /job:localhost/replica:0/task:0/device:CPU:0.
  const DeviceName& name() const { return name_; }
  const std::string& full_name() const { return full_name_; }
  // Which kernels run here: "cpu", "sim".
  const std::string& backend() const { return backend_; }

  virtual Allocator& allocator() = 0;
  // Memory in which kernels of this device find and leave arguments that are not marked as host memory.
  virtual MemoryKind memory() const = 0;

  // Asynchronous devices only (memory() == kDevice).
  //
  // Appends work to the device's compute stream. Items of one stream run one after the other, on the device's own
  // engine; `work` must not block. Never called for host devices (their work runs on the session's threads).
  virtual void Launch(absl::AnyInvocable<void()> work);
  // Copies between host and device memory, asynchronously on the copy stream. The tensors are kept alive until `done`
  // has been called, exactly once, with the new tensor. InvalidArgument for element types that are not plain memory.
  using CopyDone = absl::AnyInvocable<void(absl::StatusOr<Tensor>)>;
  virtual void CopyFromHost(Tensor host, int32_t node_id, CopyDone done);
  virtual void CopyToHost(Tensor device, Allocator& host_allocator, int32_t node_id, CopyDone done);
  // For code that runs on the device (inside Launch): the address through which it may touch device memory.
  virtual void* KernelPointer(void* device_pointer) const { return device_pointer; }
  // Waits until everything launched so far has finished.
  virtual absl::Status Synchronize() { return absl::OkStatus(); }

 protected:
  Device(DeviceName name, std::string backend);

 private:
  DeviceName name_;
  std::string full_name_;
  std::string backend_;
};

// What a session asks for: "CPU:0", "GPU:0=sim".
struct DeviceRequest {
  DeviceName name;      // completed to a full name
  std::string backend;  // "cpu", "sim"
};
// Parses a comma-separated list: TYPE:ID or TYPE:ID=BACKEND. CPU means backend cpu; other types need a backend that
// this build has. InvalidArgument for bad text or duplicates, NotFound (naming what there is) for an unknown backend.
absl::StatusOr<std::vector<DeviceRequest>> ParseDeviceList(absl::string_view text);

// Creates the devices, host allocators charged to `budget`.
absl::StatusOr<std::vector<std::shared_ptr<Device>>> MakeDevices(const std::vector<DeviceRequest>& requests,
                                                                 std::shared_ptr<MemoryBudget> budget);

}  // namespace thalweg
