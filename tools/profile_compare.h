// What differs between two profiles (schema thalweg.profile/1) or two placement files (thalweg.placement/1).
//
// Nodes are matched by name, or by the one node of the file they stand for. What is compared is a node's least time in a step:
// other load on the machine only ever adds to a time, so that the least of 30 steps is nearly the same from one profile to the
// next where medians differ by half. A difference counts as significant only where it stands out of three kinds of noise: how far
// apart the two least times of each profile lie, how far apart the least times of the other nodes lie between the two profiles
// (memory laid out otherwise, other neighbours), both with the number of nodes compared taken into account, and a floor below
// which nobody cares. The common factor by which all nodes got faster or slower (another day, another clock) is taken out first.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "thalweg/tools/json_text.h"

namespace thalweg::tools {

enum class DifferenceCause { kKernel, kPlacement, kTransfer, kNew, kGone };
const char* DifferenceCauseName(DifferenceCause cause);

struct Difference {
  DifferenceCause cause = DifferenceCause::kKernel;
  std::string name;    // node or tensor
  std::string detail;  // op, or devices
  double before_nanos = 0;  // least of a step
  double after_nanos = 0;
  bool significant = false;
  double delta() const { return after_nanos - before_nanos; }
};

struct ProfileComparison {
  double before_nanos = 0;  // median step
  double after_nanos = 0;
  double noise = 0;         // spread of the blocks of both, as a share of the step
  double common_factor = 1; // by which the bulk of the nodes differs
  bool significant = false; // the steps differ beyond noise and common factor
  double transfers_before = 0, transfers_after = 0;  // copies per step
  std::vector<Difference> differences;               // largest first
  size_t unchanged = 0;

  double step_delta() const { return before_nanos > 0 ? after_nanos / before_nanos - 1 : 0; }
  int64_t num_significant() const;
};

// InvalidArgument if a document is not a profile.
absl::StatusOr<ProfileComparison> CompareProfiles(const nlohmann::json& before, const nlohmann::json& after);
std::string ComparisonText(const ProfileComparison& comparison, size_t top);
OrderedJson ComparisonJson(const ProfileComparison& comparison);

struct PlacementComparison {
  struct Move {
    std::string node, from, to;  // "" where a file does not name the node
  };
  std::vector<Move> moves;
  size_t unchanged = 0;
};
absl::StatusOr<PlacementComparison> ComparePlacements(const nlohmann::json& before, const nlohmann::json& after);
std::string PlacementComparisonText(const PlacementComparison& comparison, size_t top);
OrderedJson PlacementComparisonJson(const PlacementComparison& comparison);

}  // namespace thalweg::tools
