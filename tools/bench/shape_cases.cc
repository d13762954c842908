#include "thalweg/tools/bench/shape_cases.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "thalweg/proto/status_macros.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 40;
constexpr size_t kMaxCases = 1000;

absl::Status NotSwept(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is no sweep; write batch=1,8,64 for the open leading dimensions, or x.1=16,32 for dimension 1 of x"));
}

absl::StatusOr<const GeneratedInput*> Find(const std::vector<GeneratedInput>& inputs, absl::string_view name) {
  std::vector<std::string> names;
  for (const GeneratedInput& input : inputs) {
    if (name == input.name || name == absl::StrCat(input.name, ":0")) return &input;
    names.push_back(input.name);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is no input of this step with generated values, whose shape could be chosen; ",
      names.empty() ? "it has none" : absl::StrCat("there is ", absl::StrJoin(names, ", "))));
}

// The shape of `input` after all entries of `shapes`.
PartialShape ShapeOf(const GeneratedInput& input, const FixedShapes& shapes) {
  PartialShape shape = input.shape;
  for (const auto& [name, fixed] : shapes) {
    if (name == input.name || name == absl::StrCat(input.name, ":0")) shape = fixed;
  }
  return shape;
}

absl::Status SetDim(const GeneratedInput& input, const Sweep& sweep, int64_t size, FixedShapes* shapes) {
  PartialShape shape = ShapeOf(input, *shapes);
  if (!shape.has_rank() || sweep.dim >= shape.rank()) {
    return absl::InvalidArgumentError(absl::StrCat("--sweep ", sweep.name, ": input ", input.name, " has shape ", shape.ToString(),
                                                   ", of which dimension ", sweep.dim, " is not known to exist; give --shape ", input.name,
                                                   "=8x16 too"));
  }
  const PartialShape& declared = input.shape;
  if (declared.has_rank() && sweep.dim < declared.rank() && IsKnownDim(declared.dim(sweep.dim)) && declared.dim(sweep.dim) != size) {
    return absl::InvalidArgumentError(absl::StrCat("--sweep ", sweep.name, ": the graph declares ", input.name, " as ", declared.ToString(),
                                                   ", so that its dimension ", sweep.dim, " cannot be ", size));
  }
  shape.set_dim(sweep.dim, size);
  shapes->emplace_back(input.name, std::move(shape));
  return absl::OkStatus();
}

// One size of a sweep, in the shapes of one case.
absl::Status Apply(const Sweep& sweep, int64_t size, const std::vector<GeneratedInput>& inputs, FixedShapes* shapes) {
  if (!sweep.input.empty()) {
    const absl::StatusOr<const GeneratedInput*> found = Find(inputs, sweep.input);
    if (!found.ok()) return absl::InvalidArgumentError(absl::StrCat("--sweep ", sweep.name, ": ", found.status().message()));
    const GeneratedInput* const input = *found;
    return SetDim(*input, sweep, size, shapes);
  }
  std::vector<std::string> seen;
  bool any = false;
  for (const GeneratedInput& input : inputs) {
    seen.push_back(absl::StrCat(input.name, " ", input.shape.ToString()));
    const PartialShape shape = ShapeOf(input, *shapes);
    const bool open = shape.has_rank() && shape.rank() > 0 && (!input.shape.has_rank() || !IsKnownDim(input.shape.dim(0)));
    if (!open) continue;
    any = true;
    THALWEG_RETURN_IF_ERROR(SetDim(input, sweep, size, shapes));
  }
  if (any) return absl::OkStatus();
  const std::string there = seen.empty() ? "there are none (what -i gives a value keeps its shape)"
                                         : absl::StrCat("there is ", absl::StrJoin(seen, ", "));
  return absl::InvalidArgumentError(
      absl::StrCat("--sweep batch: no input with generated values has an open leading dimension; ", there));
}

}  // namespace

absl::StatusOr<std::vector<ShapeSet>> ParseShapeSets(absl::string_view text) {
  std::vector<ShapeSet> sets;
  for (absl::string_view part : absl::StrSplit(text, ';')) {
    ShapeSet set;
    set.text = std::string(part);
    THALWEG_ASSIGN_OR_RETURN(set.shapes, ParseFixedShapes(absl::StrSplit(part, ',')));
    sets.push_back(std::move(set));
  }
  return sets;
}

absl::StatusOr<Sweep> ParseSweep(absl::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == absl::string_view::npos) return NotSwept(text);
  Sweep sweep;
  sweep.name = std::string(text.substr(0, equals));
  if (sweep.name != "batch") {
    const size_t dot = sweep.name.rfind('.');
    if (dot == std::string::npos || dot == 0 || !absl::SimpleAtoi(sweep.name.substr(dot + 1), &sweep.dim) || sweep.dim < 0) {
      return NotSwept(text);
    }
    sweep.input = sweep.name.substr(0, dot);
  }
  THALWEG_ASSIGN_OR_RETURN(sweep.sizes, ParseIntegerList(text.substr(equals + 1), 0, kMaxSize));
  return sweep;
}

absl::StatusOr<std::vector<ShapeCase>> MakeShapeCases(const std::vector<GeneratedInput>& inputs, const FixedShapes& base,
                                                      const std::vector<ShapeSet>& sets, const std::vector<Sweep>& sweeps) {
  std::vector<ShapeCase> cases;
  for (const ShapeSet& set : sets) {
    ShapeCase& c = cases.emplace_back(ShapeCase{set.text, base, 0});
    for (const auto& [name, shape] : set.shapes) {
      if (absl::StatusOr<const GeneratedInput*> input = Find(inputs, name); !input.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("--shapes: ", input.status().message()));
      } else if (!(*input)->shape.IsCompatibleWith(shape)) {
        const std::string declared = (*input)->shape.ToString();
        return absl::InvalidArgumentError(
            absl::StrCat("--shapes: the graph declares ", name, " as ", declared, ", which cannot be ", shape.ToString()));
      }
      c.shapes.emplace_back(name, shape);
    }
  }
  if (sets.empty()) cases.push_back({"", base, 0});
  for (const Sweep& sweep : sweeps) {
    std::vector<ShapeCase> former = std::exchange(cases, {});
    if (former.size() * sweep.sizes.size() > kMaxCases) {
      return absl::InvalidArgumentError(absl::StrCat("--sweep and --shapes make more than ", kMaxCases, " combinations"));
    }
    for (const ShapeCase& from : former) {
      for (const int64_t size : sweep.sizes) {
        ShapeCase& c = cases.emplace_back(from);
        absl::StrAppend(&c.text, c.text.empty() ? "" : " ", sweep.name, "=", size);
        if (sweep.input.empty()) c.batch = size;
        THALWEG_RETURN_IF_ERROR(Apply(sweep, size, inputs, &c.shapes));
      }
    }
  }
  return cases;
}

}  // namespace thalweg::tools
