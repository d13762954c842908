// What the graph layer asks about kernels, answered over the kernel registry: which backend can run a node (placement), and
// what a node with constant inputs evaluates to (constant folding).
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "thalweg/graph/compile_graph.h"
#include "thalweg/graph/placement/placement.h"
#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

// Both borrow `library`, which must outlive them. Thread-safe.
std::unique_ptr<KernelCatalog> MakeKernelCatalog(const OpLibrary& library);
// Evaluates with CPU kernels on the calling thread, in host memory of its own bounded by the `max_bytes` of a call.
std::unique_ptr<ConstantEvaluator> MakeConstantEvaluator(const OpLibrary& library);

// Which arguments of `node` are in host memory on a device that has memory of its own (A84): those whose type cannot leave
// it, those that the kernel `def` wants there (null: no kernel), and constants with the attribute kOutputHostMemoryAttr. An entry
// per type and output. InvalidArgument if the kernel names an argument that the op does not have.
struct HostArguments {
  std::vector<bool> inputs;
  std::vector<bool> outputs;
};
absl::StatusOr<HostArguments> FindHostArguments(const Node& node, absl::Span<const DType> input_types, const KernelDef* def);

}  // namespace thalweg
