// Every pass, in the order in which they run.
#pragma once

#include "absl/types/span.h"
#include "thalweg/graph/passes/pass.h"

namespace thalweg {

absl::Span<const Pass> AllPasses();

}  // namespace thalweg
