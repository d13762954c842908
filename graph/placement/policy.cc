#include "thalweg/graph/placement/policy.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace thalweg {

absl::StatusOr<PlacementPolicy> ParsePlacementPolicy(const std::string& text) {
  PlacementPolicy policy;
  if (text == "default") return policy;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "scatter")) {
    policy.kind = PlacementPolicy::Kind::kScatter;
    if (rest.empty()) return policy;
    if (absl::ConsumePrefix(&rest, "~") && absl::SimpleAtoi(rest, &policy.seed)) return policy;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown placement policy '", text, "' (there are: default, scatter~SEED)"));
}

}  // namespace thalweg
