#include "thalweg/tools/profile_compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/report.h"

namespace thalweg::tools {
namespace {

using nlohmann::json;

// One in so many comparisons of equal profiles may call something significant.
constexpr double kFalseAlarms = 0.02;
// Changes smaller than this, of a node and as a part of the work of all nodes, are of no interest.
constexpr double kLeastChange = 0.02;
constexpr double kLeastShareOfWork = 0.001;
// Only nodes with at least this part of the work tell the common factor.
constexpr double kBulkShare = 0.002;

// Noise that is always reckoned with, as a share of a node's time; and where too few nodes tell how much there is.
constexpr double kLeastNoise = 0.002;
constexpr double kNoiseOfFewNodes = 0.01;
constexpr size_t kFewNodes = 8;
// Of Student's t, which says how likely a difference is that many times the noise: few, because a busy machine's noise has
// heavier tails than the normal distribution.
constexpr double kFreedom = 8;
// A median of absolute deviations, times this, is a standard deviation.
constexpr double kDeviationOfMedian = 1.4826;

struct NodeRow {
  std::string name, op, device;
  double nanos = 0;  // the least of a step
  double gap = 1;    // to the second least, as a share
};

struct ParsedProfile {
  double p50 = 0;
  double work = 0;  // the least times of all nodes, in the measure that they are compared by
  std::vector<double> blocks;
  std::map<std::string, NodeRow> nodes;
  std::map<std::string, double> transfers;  // "tensor  from -> to": nanoseconds, exposed ones included
  double copies = 0;
};

double Number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::vector<double> Numbers(const json& object, const char* key) {
  std::vector<double> out;
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return out;
  for (const json& n : *found) {
    if (n.is_number()) out.push_back(n.get<double>());
  }
  return out;
}

// A rewritten node that stands for one node of the file is known by that node's name.
std::string KeyOf(const json& row) {
  const auto found = row.find("stands_for");
  if (found != row.end() && found->is_array() && found->size() == 1 && (*found)[0].is_string()) {
    return (*found)[0].get<std::string>();
  }
  return Text(row, "name");
}

absl::Status CheckSchema(const json& document, absl::string_view prefix) {
  if (document.is_object() && absl::StartsWith(Text(document, "schema"), prefix)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the document is not of schema ", prefix, "1"));
}

absl::StatusOr<ParsedProfile> Parse(const json& document) {
  THALWEG_RETURN_IF_ERROR(CheckSchema(document, "thalweg.profile/"));
  ParsedProfile profile;
  const auto step = document.find("step");
  const auto rows = document.find("rows");
  if (step == document.end() || rows == document.end() || !step->is_object() || !rows->is_array()) {
    return absl::InvalidArgumentError("the profile has no 'step' or no 'rows'");
  }
  profile.p50 = Number(*step, "p50_ns");
  profile.blocks = Numbers(*step, "block_ns");
  for (const json& row : *rows) {
    if (!row.is_object()) continue;
    const std::string type = Text(row, "type");
    if (type == "node") {
      NodeRow& node = profile.nodes[KeyOf(row)];
      const std::vector<double> least = Numbers(row, "least_ns");
      node = {Text(row, "name"), Text(row, "op"), Text(row, "device")};
      if (!least.empty()) node.nanos = least[0];
      if (least.size() > 1 && least[0] > 0) node.gap = least[1] / least[0] - 1;
      profile.work += node.nanos;
    } else if (type == "transfer") {
      profile.copies += Number(row, "count");
      profile.transfers[absl::StrCat(Text(row, "tensor"), "  ", Text(row, "from"), " -> ", Text(row, "to"))] +=
          Number(row, "time_ns") + Number(row, "exposed_ns");
    }
  }
  return profile;
}

double Mean(const std::vector<double>& v) {
  return v.empty() ? 0 : std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

double Variance(const std::vector<double>& v) {
  if (v.size() < 2) return 0;
  const double mean = Mean(v);
  double sum = 0;
  for (const double x : v) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(v.size() - 1);
}

double Median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// The two-sided tail of Student's t, through the incomplete beta function as a continued fraction.
double TailOfT(double t, double freedom) {
  const double x = freedom / (freedom + t * t), a = freedom / 2, b = 0.5;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast for x below (a+1)/(a+b+2); beyond, the mirrored one does.
  const bool mirrored = x > (a + 1) / (a + b + 2);
  const double p = mirrored ? b : a, q = mirrored ? a : b, y = mirrored ? 1 - x : x;
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 / std::max(1 - (p + q) * y / (p + 1), kTiny), value = d;
  for (int m = 1; m < 200; ++m) {
    const double even = m * (q - m) * y / ((p + 2 * m - 1) * (p + 2 * m));
    const double odd = -(p + m) * (p + q + m) * y / ((p + 2 * m) * (p + 2 * m + 1));
    for (const double term : {even, odd}) {
      d = 1 + term * d;
      c = 1 + term / c;
      if (std::abs(d) < kTiny) d = kTiny;
      if (std::abs(c) < kTiny) c = kTiny;
      d = 1 / d;
      value *= d * c;
    }
    if (std::abs(d * c - 1) < 1e-12) break;
  }
  const double part = front * value / p;
  return std::clamp(mirrored ? 1 - part : part, 0.0, 1.0);
}

double Spread(const std::vector<double>& blocks) {
  const double mean = Mean(blocks);
  return mean > 0 ? std::sqrt(Variance(blocks)) / mean : 0;
}

class ProfileComparer {
 public:
  ProfileComparer(const ParsedProfile& before, const ParsedProfile& after) : before_(before), after_(after) {}

  ProfileComparison Run() {
    out_.before_nanos = before_.p50;
    out_.after_nanos = after_.p50;
    out_.transfers_before = before_.copies;
    out_.transfers_after = after_.copies;
    out_.noise = std::hypot(Spread(before_.blocks), Spread(after_.blocks));
    FindCommonFactor();
    CompareNodes();
    CompareTransfers();
    std::stable_sort(out_.differences.begin(), out_.differences.end(), [](const Difference& a, const Difference& b) {
      return std::abs(a.delta()) > std::abs(b.delta());
    });
    // A step differs if something in it does: what moved all nodes alike is the machine, or the build as a whole.
    const bool anything = out_.num_significant() > 0;
    const double change = before_.p50 > 0 ? std::abs(after_.p50 / out_.common_factor / before_.p50 - 1) : 0;
    out_.significant = anything && change > std::max(kLeastChange, 2 * out_.noise);
    return std::move(out_);
  }

 private:
  // What the nodes that make up most of the step have in common, and how far they scatter around it.
  void FindCommonFactor() {
    std::vector<double> factors;
    for (const auto& [key, node] : before_.nodes) {
      const auto other = after_.nodes.find(key);
      if (other == after_.nodes.end() || other->second.device != node.device) continue;
      if (node.nanos < kBulkShare * before_.work || other->second.nanos <= 0) continue;
      factors.push_back(other->second.nanos / node.nanos);
    }
    // With few nodes, the one that changed would pass for the machine.
    if (factors.size() >= 4) out_.common_factor = Median(factors);
    for (double& factor : factors) factor = std::abs(factor / out_.common_factor - 1);
    scatter_ = std::max(kDeviationOfMedian * Median(factors), factors.size() < kFewNodes ? kNoiseOfFewNodes : kLeastNoise);
  }

  void CompareNodes() {
    size_t compared = 0;
    for (const auto& [key, node] : before_.nodes) compared += after_.nodes.count(key);
    const double threshold = kFalseAlarms / static_cast<double>(std::max<size_t>(1, compared));
    for (const auto& [key, node] : before_.nodes) {
      const auto other = after_.nodes.find(key);
      if (other == after_.nodes.end()) {
        Add(DifferenceCause::kGone, node.name, node.op, node.nanos, 0, Matters(node.nanos, 0));
      } else if (other->second.device != node.device) {
        Add(DifferenceCause::kPlacement, node.name, absl::StrCat(node.device, " -> ", other->second.device), node.nanos,
            other->second.nanos, true);
      } else {
        CompareNode(node, other->second, threshold);
      }
    }
    for (const auto& [key, node] : after_.nodes) {
      if (before_.nodes.count(key) == 0) Add(DifferenceCause::kNew, node.name, node.op, 0, node.nanos, Matters(0, node.nanos));
    }
  }

  void CompareNode(const NodeRow& a, const NodeRow& b, double threshold) {
    const double expected = a.nanos * out_.common_factor;
    const double change = expected > 0 ? std::abs(b.nanos / expected - 1) : 0;
    const double noise = std::hypot(scatter_, a.gap, b.gap);
    const bool significant = Matters(expected, b.nanos) && change > kLeastChange && TailOfT(change / noise, kFreedom) < threshold;
    if (significant) Add(DifferenceCause::kKernel, a.name, a.op, a.nanos, b.nanos, true);
    else ++out_.unchanged;
  }

  void CompareTransfers() {
    std::set<std::string> keys;
    for (const auto& [key, nanos] : before_.transfers) keys.insert(key);
    for (const auto& [key, nanos] : after_.transfers) keys.insert(key);
    for (const std::string& key : keys) {
      const auto a = before_.transfers.find(key), b = after_.transfers.find(key);
      const bool is_new = a == before_.transfers.end(), is_gone = b == after_.transfers.end();
      if (!is_new && !is_gone) continue;  // their _Send and _Recv are compared as nodes
      Add(DifferenceCause::kTransfer, key, is_new ? "new" : "gone", is_new ? 0 : a->second, is_gone ? 0 : b->second, true);
    }
  }

  bool Matters(double a, double b) const { return std::abs(a - b) > kLeastShareOfWork * std::max(before_.work, after_.work); }

  void Add(DifferenceCause cause, const std::string& name, std::string detail, double a, double b, bool significant) {
    out_.differences.push_back({cause, name, std::move(detail), a, b, significant});
  }

  const ParsedProfile& before_;
  const ParsedProfile& after_;
  double scatter_ = 0;  // of the nodes around the common factor
  ProfileComparison out_;
};

std::string Signed(double nanos) { return absl::StrCat(nanos < 0 ? "-" : "+", FormatNanos(std::abs(nanos))); }

}  // namespace

const char* DifferenceCauseName(DifferenceCause cause) {
  switch (cause) {
    case DifferenceCause::kKernel: return "kernel";
    case DifferenceCause::kPlacement: return "placement";
    case DifferenceCause::kTransfer: return "transfer";
    case DifferenceCause::kNew: return "new";
    case DifferenceCause::kGone: return "gone";
  }
  return "?";
}

int64_t ProfileComparison::num_significant() const {
  return std::count_if(differences.begin(), differences.end(), [](const Difference& d) { return d.significant; });
}

absl::StatusOr<ProfileComparison> CompareProfiles(const json& before, const json& after) {
  THALWEG_ASSIGN_OR_RETURN(const ParsedProfile a, Parse(before));
  THALWEG_ASSIGN_OR_RETURN(const ParsedProfile b, Parse(after));
  return ProfileComparer(a, b).Run();
}

std::string ComparisonText(const ProfileComparison& c, size_t top) {
  std::string text = absl::StrFormat("step %s -> %s (%+.1f %%, %s)   noise %.1f %%, all nodes together x %.3f\n",
                                     FormatNanos(c.before_nanos), FormatNanos(c.after_nanos),
                                     100 * c.step_delta(),
                                     c.significant ? "significant" : "not significant", 100 * c.noise, c.common_factor);
  if (c.transfers_before != c.transfers_after) {
    absl::StrAppend(&text, "transfers ", absl::StrFormat("%.4g -> %.4g", c.transfers_before, c.transfers_after), " per step\n");
  }
  std::map<DifferenceCause, double> sums;
  for (const Difference& d : c.differences) {
    if (d.significant) sums[d.cause] += d.delta();
  }
  for (const auto& [cause, sum] : sums) absl::StrAppend(&text, " ", Signed(sum), "  ", DifferenceCauseName(cause), "\n");
  Table table({Table::Align::kRight, Table::Align::kLeft, Table::Align::kLeft, Table::Align::kLeft});
  size_t shown = 0;
  for (const Difference& d : c.differences) {
    if (!d.significant || shown++ >= top) continue;
    table.AddRow({Signed(d.delta()), DifferenceCauseName(d.cause), d.name, d.detail});
  }
  if (!table.empty()) absl::StrAppend(&text, "\n", table.ToString("  "));
  if (shown > top) absl::StrAppend(&text, shown - top, " more (--top)\n");
  absl::StrAppend(&text, Plural(static_cast<int64_t>(c.unchanged), "node"), " unchanged within noise\n");
  return text;
}

OrderedJson ComparisonJson(const ProfileComparison& c) {
  OrderedJson out = {{"schema", "thalweg.compare/1"}, {"step", {{"before_ns", c.before_nanos}, {"after_ns", c.after_nanos}}}};
  out["step"]["significant"] = c.significant;
  out["step"]["noise"] = c.noise;
  out["step"]["common_factor"] = c.common_factor;
  out["step"]["delta"] = c.step_delta();
  out["significant"] = c.num_significant();
  out["transfers_per_step"] = {{"before", c.transfers_before}, {"after", c.transfers_after}};
  out["rows"] = OrderedJson::array();
  for (const Difference& d : c.differences) {
    out["rows"].push_back({{"type", "difference"}, {"cause", DifferenceCauseName(d.cause)}, {"name", d.name}, {"detail", d.detail},
                           {"before_ns", d.before_nanos}, {"after_ns", d.after_nanos}, {"significant", d.significant}});
  }
  out["unchanged"] = c.unchanged;
  return out;
}

absl::StatusOr<PlacementComparison> ComparePlacements(const json& before, const json& after) {
  std::map<std::string, std::pair<std::string, std::string>> devices;
  for (const bool first : {true, false}) {
    const json& document = first ? before : after;
    THALWEG_RETURN_IF_ERROR(CheckSchema(document, "thalweg.placement/"));
    const auto nodes = document.find("nodes");
    if (nodes == document.end() || !nodes->is_object()) return absl::InvalidArgumentError("the placement has no 'nodes'");
    for (const auto& [name, device] : nodes->items()) {
      if (!device.is_string()) return absl::InvalidArgumentError(absl::StrCat("node '", name, "' has no device text"));
      (first ? devices[name].first : devices[name].second) = device.get<std::string>();
    }
  }
  PlacementComparison out;
  for (const auto& [name, pair] : devices) {
    if (pair.first == pair.second) ++out.unchanged;
    else out.moves.push_back({name, pair.first, pair.second});
  }
  return out;
}

std::string PlacementComparisonText(const PlacementComparison& c, size_t top) {
  std::map<std::pair<std::string, std::string>, int64_t> groups;
  const auto name = [](const std::string& device) { return device.empty() ? std::string("(not named)") : device; };
  for (const PlacementComparison::Move& move : c.moves) ++groups[{name(move.from), name(move.to)}];
  std::string text;
  for (const auto& [devices, count] : groups) {
    absl::StrAppend(&text, Plural(count, "node"), "  ", devices.first, " -> ", devices.second, "\n");
  }
  Table table({Table::Align::kLeft, Table::Align::kLeft});
  for (size_t i = 0; i < c.moves.size() && i < top; ++i) {
    table.AddRow({c.moves[i].node, absl::StrCat(name(c.moves[i].from), " -> ", name(c.moves[i].to))});
  }
  if (!table.empty()) text += table.ToString("  ");
  if (c.moves.size() > top) absl::StrAppend(&text, c.moves.size() - top, " more (--top)\n");
  absl::StrAppend(&text, Plural(static_cast<int64_t>(c.unchanged), "node"), " unchanged\n");
  return text;
}

OrderedJson PlacementComparisonJson(const PlacementComparison& c) {
  OrderedJson out = {{"schema", "thalweg.compare/1"}, {"rows", OrderedJson::array()}, {"unchanged", c.unchanged}};
  for (const PlacementComparison::Move& move : c.moves) {
    out["rows"].push_back({{"type", "move"}, {"node", move.node}, {"from", move.from}, {"to", move.to}});
  }
  return out;
}

}  // namespace thalweg::tools
