// "Did you mean ...": names close to one that does not exist.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace thalweg {

// The edit distance (insertions, deletions, substitutions, swaps of neighbours) of two texts if it is at most `limit`,
// otherwise limit + 1.
// Takes time proportional to limit * length.
int BoundedEditDistance(absl::string_view a, absl::string_view b, int limit);

// Collects the names closest to `wanted` out of many that are offered one by one. Names within a few edits come first,
// then those that share the last path component ("a/b/conv" for "c/conv"). Keeps views: offered names must outlive it.
class NearestNameFinder {
 public:
  NearestNameFinder(absl::string_view wanted, int limit);

  void Offer(absl::string_view name);
  // Closest first; equally close ones in the order offered.
  std::vector<std::string> Names() const;

 private:
  absl::string_view wanted_;
  absl::string_view wanted_leaf_;
  int max_edits_;
  size_t limit_;
  std::vector<std::pair<int, absl::string_view>> best_;  // sorted by score, at most limit_
};

// "; did you mean 'a', 'b'?" or "" if there are no names.
std::string DidYouMean(const std::vector<std::string>& names);

}  // namespace thalweg
