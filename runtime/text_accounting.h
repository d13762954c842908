// Counts the text of strings that kernels make against the session's memory limit (devices/text_memory.h).
//
// A kernel with outputs of strings is wrapped when its plan is made, so that neither the executor nor the kernels know of
// it, and nothing else pays for it. Asynchronous kernels are left alone: they hand on what others made.
// Errors: the step fails with ResourceExhausted where the limit is passed.
#pragma once

#include <memory>

#include "thalweg/ops/kernel.h"

namespace thalweg {

// `kernel`, or one that also charges the text of its outputs.
std::unique_ptr<Kernel> WithTextAccounting(std::unique_ptr<Kernel> kernel, const KernelNode& node);

}  // namespace thalweg
