// What the graph layer asks about kernels, answered over the kernel registry: which backend can run a node (placement), and
// what a node with constant inputs evaluates to (constant folding).
#pragma once

#include <memory>

#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

// Both borrow `library`, which must outlive them. Thread-safe.
std::unique_ptr<KernelCatalog> MakeKernelCatalog(const OpLibrary& library);
// Evaluates with CPU kernels on the calling thread, in host memory of its own bounded by the `max_bytes` of a call.
std::unique_ptr<ConstantEvaluator> MakeConstantEvaluator(const OpLibrary& library);

}  // namespace thalweg
