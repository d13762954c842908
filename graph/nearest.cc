#include "thalweg/graph/nearest.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace thalweg {
namespace {

constexpr int kMostEdits = 6;

absl::string_view LastComponent(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == absl::string_view::npos ? name : name.substr(slash + 1);
}

}  // namespace

int BoundedEditDistance(absl::string_view a, absl::string_view b, int limit) {
  const int n = static_cast<int>(a.size());
  const int m = static_cast<int>(b.size());
  if (std::abs(n - m) > limit) return limit + 1;
  // Only cells within `limit` of the diagonal can matter: cell (i, j) stands at j - i + limit + 1 of its row.
  const int width = 2 * limit + 3;
  using Row = absl::InlinedVector<int, 2 * kMostEdits + 3>;
  Row before_previous(width, limit + 1), previous(width, limit + 1), current(width, limit + 1);
  for (int j = 0; j <= std::min(m, limit); ++j) previous[j + limit + 1] = j;
  for (int i = 1; i <= n; ++i) {
    std::fill(current.begin(), current.end(), limit + 1);
    int best = limit + 1;
    for (int j = std::max(0, i - limit); j <= std::min(m, i + limit); ++j) {
      const int k = j - i + limit + 1;
      int cell = j == 0 ? i : previous[k + 1] + 1;
      if (j > 0) cell = std::min({cell, current[k - 1] + 1, previous[k] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) cell = std::min(cell, before_previous[k] + 1);
      current[k] = std::min(cell, limit + 1);
      best = std::min(best, current[k]);
    }
    // A swap reaches back two rows, so both must be beyond the limit before nothing can come below it.
    if (best > limit && *std::min_element(previous.begin(), previous.end()) > limit) return limit + 1;
    before_previous.swap(previous);
    previous.swap(current);
  }
  return previous[m - n + limit + 1];
}

NearestNameFinder::NearestNameFinder(absl::string_view wanted, int limit)
    : wanted_(wanted),
      wanted_leaf_(LastComponent(wanted)),
      max_edits_(
          std::min<int>(kMostEdits, std::max<int>(1, static_cast<int>(std::min<size_t>(wanted.size(), 100)) / 3))),
      limit_(static_cast<size_t>(std::max(limit, 0))) {}

void NearestNameFinder::Offer(absl::string_view name) {
  if (limit_ == 0) return;
  const int worst = best_.size() < limit_ ? kMostEdits + 2 : best_.back().first;
  // Equal but for case is the likeliest slip, however many letters it takes.
  int score = absl::EqualsIgnoreCase(wanted_, name) ? 0 : BoundedEditDistance(wanted_, name, std::min(max_edits_, worst));
  if (score > max_edits_) {
    if (wanted_leaf_.empty() || LastComponent(name) != wanted_leaf_) return;
    score = kMostEdits + 1;
  }
  if (score >= worst) return;
  const auto place =
      std::upper_bound(best_.begin(), best_.end(), score,
                       [](int s, const std::pair<int, absl::string_view>& entry) { return s < entry.first; });
  best_.insert(place, {score, name});
  if (best_.size() > limit_) best_.pop_back();
}

std::vector<std::string> NearestNameFinder::Names() const {
  std::vector<std::string> names;
  for (const auto& [score, name] : best_) names.emplace_back(name);
  return names;
}

std::string DidYouMean(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  return absl::StrCat("; did you mean '", absl::StrJoin(names, "', '"), "'?");
}

}  // namespace thalweg
