// Text: joining, splitting, matching, conversion to and from numbers, encodings.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterStringOps(OpLibrary& lib);

}  // namespace thalweg
