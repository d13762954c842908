// Ops on queues.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterQueueOps(OpLibrary& lib);

}  // namespace thalweg
