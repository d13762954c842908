#include "thalweg/runtime/transfer.h"

#include <utility>

namespace thalweg {

void StartTransfer(StepState& step, const PlanNode& node, Tensor source, Device::CopyDone done) {
  Device& destination = *node.info->device;
  const int32_t id = node.info->id;
  const bool to_device = node.info->output_memory()[0] == MemoryKind::kDevice;
  if (source.memory() == MemoryKind::kHost && to_device) {
    destination.CopyFromHost(std::move(source), id, std::move(done));
    return;
  }
  Device& owner = *step.plan().devices[step.plan().transfer_source[node.aux]];
  if (source.memory() == MemoryKind::kDevice && !to_device) {
    owner.CopyToHost(std::move(source), step.host_allocator(), id, std::move(done));
    return;
  }
  // From one device's memory to another's: through the host.
  owner.CopyToHost(std::move(source), step.host_allocator(), id,
                   [&destination, id, done = std::move(done)](absl::StatusOr<Tensor> staged) mutable {
                     if (!staged.ok()) done(std::move(staged));
                     else destination.CopyFromHost(*std::move(staged), id, std::move(done));
                   });
}

}  // namespace thalweg
