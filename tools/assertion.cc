#include "thalweg/tools/assertion.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/report.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

absl::Status Malformed(absl::string_view text, absl::Span<const FigureName> figures) {
  const std::string names =
      absl::StrJoin(figures, ", ", [](std::string* out, const FigureName& f) { absl::StrAppend(out, f.name); });
  return absl::InvalidArgumentError(absl::StrCat("'", text,
                                                 "' is no assertion; write FIGURE, one of < <= > >= == and a bound, "
                                                 "as in 'p50<2ms'; figures are ",
                                                 names));
}

absl::StatusOr<double> ParseBound(FigureUnit unit, absl::string_view text) {
  if (unit == FigureUnit::kNanos) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t nanos, ParseNanos(text));
    return static_cast<double>(nanos);
  }
  if (unit == FigureUnit::kBytes) {
    THALWEG_ASSIGN_OR_RETURN(const int64_t bytes, ParseBytes(text));
    return static_cast<double>(bytes);
  }
  double number = 0;
  const bool percent = unit == FigureUnit::kShare && absl::ConsumeSuffix(&text, "%");
  if (!ParseDouble(text, &number)) return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not a number"));
  return percent ? number / 100 : number;
}

}  // namespace

bool Assertion::HoldsFor(double value) const {
  if (relation == "<") return value < bound;
  if (relation == "<=") return value <= bound;
  if (relation == ">") return value > bound;
  if (relation == ">=") return value >= bound;
  return value == bound;
}

absl::StatusOr<Assertion> ParseAssertion(absl::string_view text, absl::Span<const FigureName> figures) {
  const size_t begin = text.find_first_of("<>=");
  if (begin == absl::string_view::npos) return Malformed(text, figures);
  const size_t end = std::min(text.find_first_not_of("<>=", begin), text.size());
  const absl::string_view name = absl::StripAsciiWhitespace(text.substr(0, begin));
  const auto figure =
      std::find_if(figures.begin(), figures.end(), [&](const FigureName& f) { return name == f.name; });
  Assertion assertion;
  assertion.text = std::string(text);
  assertion.relation = std::string(text.substr(begin, end - begin));
  const auto relations = {"<", "<=", ">", ">=", "=="};
  if (figure == figures.end() || std::find(relations.begin(), relations.end(), assertion.relation) == relations.end())
    return Malformed(text, figures);
  assertion.figure = static_cast<size_t>(figure - figures.begin());
  THALWEG_ASSIGN_OR_RETURN(assertion.bound, ParseBound(figure->unit, absl::StripAsciiWhitespace(text.substr(end))));
  return assertion;
}

std::string FigureText(FigureUnit unit, double value) {
  switch (unit) {
    case FigureUnit::kNanos: return FormatNanos(value);
    case FigureUnit::kBytes: return FormatBytes(value);
    case FigureUnit::kNumber: return FormatShort(value);
    case FigureUnit::kShare: return absl::StrFormat("%.1f%%", 100 * value);
  }
  return "";
}

}  // namespace thalweg::tools
