#include "thalweg/ops/linalg/einsum_equation.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "thalweg/proto/status_macros.h"

namespace thalweg {
namespace {

absl::Status BadEquation(absl::string_view equation, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("equation '", equation, "': ", why));
}

bool HasEllipsis(const Labels& subscript) { return std::find(subscript.begin(), subscript.end(), kEllipsis) != subscript.end(); }

absl::StatusOr<Labels> ParseSubscript(absl::string_view text, absl::string_view equation) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c >= 'a' && c <= 'z') {
      labels.push_back(c - 'a');
    } else if (c >= 'A' && c <= 'Z') {
      labels.push_back(26 + c - 'A');
    } else if (text.substr(i, 3) == "..." && !HasEllipsis(labels)) {
      labels.push_back(kEllipsis);
      i += 2;
    } else {
      return BadEquation(equation, absl::StrCat("labels are letters, and '...' once per operand; found '", text.substr(i, 1), "'"));
    }
    if (labels.size() > kMaxRank) return BadEquation(equation, "an operand has more labels than a tensor can have dimensions");
  }
  return labels;
}

}  // namespace

absl::StatusOr<EinsumEquation> ParseEinsum(absl::string_view equation, int num_inputs) {
  const std::vector<std::string> sides = absl::StrSplit(equation, "->");
  if (sides.size() != 2) return BadEquation(equation, "it must have exactly one '->'");
  const std::vector<std::string> subscripts = absl::StrSplit(sides[0], ',');
  if (static_cast<int>(subscripts.size()) != num_inputs || num_inputs > 2) {
    return BadEquation(equation, absl::StrCat("it names ", subscripts.size(), " operands, the node has ", num_inputs,
                                              "; one or two are supported"));
  }
  EinsumEquation parsed;
  for (const std::string& subscript : subscripts) {
    THALWEG_ASSIGN_OR_RETURN(Labels labels, ParseSubscript(subscript, equation));
    parsed.inputs.push_back(std::move(labels));
  }
  THALWEG_ASSIGN_OR_RETURN(parsed.output, ParseSubscript(sides[1], equation));
  for (const int label : parsed.output) {
    const bool known = std::any_of(parsed.inputs.begin(), parsed.inputs.end(), [label](const Labels& input) {
      return std::find(input.begin(), input.end(), label) != input.end();
    });
    if (!known && label != kEllipsis) return BadEquation(equation, "the output has a label that no operand has");
  }
  return parsed;
}

int EllipsisRank(const Labels& subscript, int rank) {
  return HasEllipsis(subscript) ? rank - static_cast<int>(subscript.size() - 1) : 0;
}

absl::StatusOr<Labels> LabelsOfOperand(const Labels& subscript, int rank) {
  const int ellipsis = EllipsisRank(subscript, rank), named = static_cast<int>(subscript.size()) - (HasEllipsis(subscript) ? 1 : 0);
  if (ellipsis < 0 || named + ellipsis != rank) {
    return absl::InvalidArgumentError(absl::StrCat("an operand of rank ", rank, " does not fit its subscript of ", named, " labels"));
  }
  return LabelsOfOutput(subscript, ellipsis);
}

Labels LabelsOfOutput(const Labels& subscript, int ellipsis_rank) {
  Labels labels;
  for (const int label : subscript) {
    if (label != kEllipsis) labels.push_back(label);
    else
      for (int i = ellipsis_rank - 1; i >= 0; --i) labels.push_back(kFirstEllipsisLabel + i);
  }
  return labels;
}

}  // namespace thalweg
