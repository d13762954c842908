// What `profile` says: tables for people, the rows of schema thalweg.profile/1 for programs and for `compare`.
//
// The schema is described in docs/profiling.md; fields are only added within one version.
#pragma once

#include <string>
#include <vector>

#include "thalweg/runtime/profile.h"
#include "thalweg/runtime/session.h"
#include "thalweg/tools/json_text.h"

namespace thalweg::tools {

// A profile and what was measured around it.
struct ProfileResult {
  Profile profile;
  std::vector<int64_t> traced_nanos;    // of each recorded step, by a clock around the call
  std::vector<int64_t> untraced_nanos;  // of the steps without recording that ran in between
  int64_t load_nanos = 0;
  int64_t first_run_nanos = 0;
  Callable::Info info;
  int threads = 1;
  bool has_memory = false;

  // Busy time and gaps of a device, as a share of what the clock around the calls showed: 1 if totals close. The middle of the steps
  // decides: now and then the thread loses its core between the two clocks.
  double Closure() const;
  // What recording adds to a step, as a share: the median over pairs of a recorded step and the plain one beside it, so that what
  // slows the machine for a while slows both.
  double Overhead() const;
};

enum class ProfileView { kOp, kNode, kScope, kDevice, kLoop };

struct ProfileReportOptions {
  std::vector<ProfileView> views;
  size_t top = 10;         // rows of a table
  int scope_depth = 1;     // components of a name that make a scope
  bool critical_path = false;
  bool gaps = false;
  bool transfers = false;
  bool memory = false;
};

std::string ProfileText(const ProfileResult& result, const ProfileReportOptions& options);
// {"schema": "thalweg.profile/1", "config": ..., "step": {...}, "rows": [...]}.
OrderedJson ProfileJson(const ProfileResult& result, OrderedJson config);
// The same as one row per line, the first of type "profile" with config and step.
std::string ProfileJsonLines(const OrderedJson& document);

}  // namespace thalweg::tools
