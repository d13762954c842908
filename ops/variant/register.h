// Ops on values carried in variants: tensor lists and optional values.
#pragma once

#include "thalweg/ops/kernel_registry.h"

namespace thalweg {

void RegisterVariantOps(OpLibrary& lib);

}  // namespace thalweg
