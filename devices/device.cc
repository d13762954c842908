#include "thalweg/devices/device.h"

#include <utility>

namespace thalweg {

Device::Device(DeviceName name, std::string backend)
    : name_(std::move(name)), full_name_(name_.ToString()), backend_(std::move(backend)) {}

void Device::Launch(absl::AnyInvocable<void()> work) { work(); }

void Device::CopyFromHost(Tensor host, int32_t node_id, CopyDone done) { done(std::move(host)); }

void Device::CopyToHost(Tensor device, Allocator& host_allocator, int32_t node_id, CopyDone done) {
  done(std::move(device));
}

}  // namespace thalweg
