#include "thalweg/tools/units.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg::tools {
namespace {

constexpr size_t kMaxNumbers = 64;  // of a list

struct Unit {
  const char* name;
  double factor;
};

// Splits "2.5GiB" into 2.5 and "GiB". False if there is no number at the start.
bool SplitNumber(absl::string_view text, double* number, absl::string_view* unit) {
  size_t end = 0;
  while (end < text.size() &&
         (std::isdigit(static_cast<unsigned char>(text[end])) || text[end] == '.' || text[end] == '+' ||
          text[end] == '-' || (end > 0 && (text[end] == 'e' || text[end] == 'E')))) {
    ++end;
  }
  *unit = text.substr(end);
  return ParseDouble(text.substr(0, end), number);
}

template <size_t N>
bool Scale(absl::string_view text, const Unit (&units)[N], double default_factor, int64_t* out) {
  double number = 0;
  absl::string_view unit;
  if (!SplitNumber(text, &number, &unit) || !(number >= 0)) return false;
  double factor = unit.empty() ? default_factor : 0;
  for (const Unit& u : units) {
    if (unit == u.name) factor = u.factor;
  }
  const double value = number * factor;
  if (factor == 0 || !(value < 9.2e18)) return false;
  *out = static_cast<int64_t>(std::llround(value));
  return true;
}

absl::StatusOr<int64_t> ParseDim(absl::string_view text, bool allow_unknown, absl::string_view whole) {
  if (allow_unknown && text == "?") return kUnknownDim;
  int64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 0) {
    return absl::InvalidArgumentError(absl::StrCat("'", whole, "' is not a shape: '", text,
                                                   "' should be a size of 0 or more", allow_unknown ? " or '?'" : "",
                                                   "; write 8x224x224x3 (an empty text is a scalar)"));
  }
  return value;
}

absl::StatusOr<Dims> ParseDims(absl::string_view text, bool allow_unknown) {
  Dims dims;
  if (text.empty() || text == "scalar") return dims;
  for (absl::string_view part : absl::StrSplit(text, 'x')) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t dim, ParseDim(part, allow_unknown, text));
    dims.push_back(dim);
  }
  return dims;
}

}  // namespace

bool ParseDouble(absl::string_view text, double* out) { return absl::SimpleAtod(text, out); }

absl::StatusOr<int64_t> ParseNanos(absl::string_view text) {
  static constexpr Unit kUnits[] = {{"ns", 1},  {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"ms", 1e6},
                                    {"s", 1e9}, {"m", 60e9}, {"min", 60e9},      {"h", 3600e9}};
  int64_t nanos = 0;
  if (Scale(text, kUnits, 1e9, &nanos)) return nanos;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a time; write 5s, 250ms, 30us or 2m"));
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  static constexpr double kK = 1024;
  static constexpr Unit kUnits[] = {
      {"B", 1},    {"K", kK},        {"M", kK * kK},        {"G", kK * kK * kK},        {"T", kK * kK * kK * kK},
      {"KiB", kK}, {"MiB", kK * kK}, {"GiB", kK * kK * kK}, {"TiB", kK * kK * kK * kK}, {"KB", 1e3},
      {"MB", 1e6}, {"GB", 1e9},      {"TB", 1e12}};
  int64_t bytes = 0;
  if (Scale(text, kUnits, 1, &bytes)) return bytes;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not an amount of memory; write 2GiB, 512MiB or 4096"));
}

absl::StatusOr<int64_t> ParseInteger(absl::string_view text, int64_t low, int64_t high) {
  int64_t value = 0;
  if (absl::SimpleAtoi(text, &value) && value >= low && value <= high) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not an integer from ", low, " to ", high));
}

absl::StatusOr<double> ParseFraction(absl::string_view text) {
  absl::string_view digits = text;
  const double factor = absl::ConsumeSuffix(&digits, "%") ? 0.01 : 1;
  double value = 0;
  if (ParseDouble(digits, &value) && value > 0 && value * factor <= 1) return value * factor;
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a share; write 2% or 0.02"));
}

absl::StatusOr<std::vector<double>> ParseNumberList(absl::string_view text, double high) {
  std::vector<double> values;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    double value = 0;
    if (!ParseDouble(part, &value) || !(value > 0 && value <= high) || values.size() == kMaxNumbers) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text, "' is not a list of at most ", kMaxNumbers, " numbers above 0, up to ", high, "; write 50,99.9"));
    }
    values.push_back(value);
  }
  return values;
}

absl::StatusOr<std::vector<int64_t>> ParseIntegerList(absl::string_view text, int64_t low, int64_t high) {
  std::vector<int64_t> values;
  const bool is_range = absl::StrContains(text, ':');
  for (absl::string_view part : absl::StrSplit(text, is_range ? ':' : ',')) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t value, ParseInteger(part, is_range && values.size() == 2 ? 1 : low, high));
    values.push_back(value);
  }
  if (!is_range && values.size() <= kMaxNumbers) return values;
  const int64_t step = values.size() == 3 ? values[2] : 1;
  if (values.size() > 3 || values[1] < values[0] ||
      (values[1] - values[0]) / step >= static_cast<int64_t>(kMaxNumbers)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a list of at most ", kMaxNumbers,
                                                   " numbers; write 1,2,8 or first:last:step as 1:8:2"));
  }
  std::vector<int64_t> range;
  for (int64_t v = values[0]; v <= values[1]; v += step) range.push_back(v);
  return range;
}

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  THALWEG_ASSIGN_OR_RETURN(const Dims dims, ParseDims(text, false));
  return Shape::Make(dims);
}

absl::StatusOr<PartialShape> ParsePartialShape(absl::string_view text) {
  THALWEG_ASSIGN_OR_RETURN(const Dims dims, ParseDims(text, true));
  return PartialShape::Make(dims);
}

}  // namespace thalweg::tools
