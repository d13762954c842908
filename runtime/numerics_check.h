// Finds the node that first makes a NaN or an infinity (SessionOptions::check_numerics).
//
// Kernels with floating-point or complex outputs are wrapped when a plan is made, so that neither the executors nor the kernels
// know of the check, and plans without it pay nothing. Constants are looked at when the plan is made, feeds when a step begins;
// nodes that only hand a value on are not looked at again. A node fails before anything reads its outputs, so all that it read was
// good.
// Outputs in a device's memory are copied to the host to be looked at, which counts against the memory limit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "thalweg/ops/kernel.h"
#include "thalweg/runtime/session.h"

namespace thalweg {

// "[1,2]": where the element with this index in row-major order is. Requires that the shape has such an element.
std::string IndexText(const Shape& shape, int64_t flat);

// InvalidArgument, "WHAT has 2 NaN, 1 -Inf in float32[3,4]; the first, NaN, is element [1,2]", if the tensor has what `check`
// looks for. Types without such values are fine. Requires host memory.
absl::Status CheckNumerics(absl::string_view what, const Tensor& tensor, NumericsCheck check);

// `kernel`, or one that also checks its outputs. Of synchronous kernels these must be in host memory.
std::shared_ptr<Kernel> WithNumericsCheck(std::shared_ptr<Kernel> kernel, const KernelNode& node, NumericsCheck check);

}  // namespace thalweg
