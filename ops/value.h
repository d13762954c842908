// Value: what an edge carries in one step: nothing yet (or dead), a tensor, or a reference to a variable's storage.
#pragma once

#include <mutex>

#include "thalweg/devices/tensor.h"

namespace thalweg {

// Storage that reference edges point at (reference variables). Reading and replacing `tensor` requires `mutex`.
struct RefStorage {
  std::mutex mutex;
  Tensor tensor;
};

struct Value {
  Tensor tensor;
  RefStorage* ref = nullptr;  // owned by a resource that outlives the step

  bool present() const { return tensor.initialized() || ref != nullptr; }
  void Clear() {
    tensor = Tensor();
    ref = nullptr;
  }
};

}  // namespace thalweg
