#include "thalweg/graph/known_ops.h"

#include <algorithm>

namespace thalweg {
namespace {

constexpr absl::string_view kKnownOps[] = {
#include "thalweg/graph/known_ops.inc"
};

}  // namespace

absl::Span<const absl::string_view> KnownOps() { return kKnownOps; }

bool IsKnownOp(absl::string_view op) { return std::binary_search(std::begin(kKnownOps), std::end(kKnownOps), op); }

}  // namespace thalweg
