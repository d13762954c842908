// The op library of this build: every family, registered by explicit calls (no static constructors).
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

// Built on first use; thread-safe; lives as long as the process.
const OpLibrary& BuiltinOps();

}  // namespace thalweg
