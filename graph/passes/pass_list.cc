#include "thalweg/graph/passes/pass_list.h"

#include "thalweg/graph/passes/arithmetic.h"
#include "thalweg/graph/passes/common_subexpressions.h"
#include "thalweg/graph/passes/constant_folding.h"
#include "thalweg/graph/passes/control_edges.h"
#include "thalweg/graph/passes/fuse_bias_activation.h"
#include "thalweg/graph/passes/fuse_elementwise.h"
#include "thalweg/graph/passes/hoist_products.h"
#include "thalweg/graph/passes/identity.h"

namespace thalweg {

absl::Span<const Pass> AllPasses() {
  static constexpr Pass kPasses[] = {
      {"identity", RemoveIdentities},
      {"constant_folding", FoldConstants},
      {"arithmetic", SimplifyArithmetic},
      {"common_subexpressions", MergeCommonSubexpressions},
      {"control_edges", DropRedundantControlEdges},
      {"hoist_products", HoistProducts},
      {"fuse_bias_activation", FuseBiasActivation},
      {"fuse_elementwise", FuseElementwise},
  };
  return kPasses;
}

}  // namespace thalweg
