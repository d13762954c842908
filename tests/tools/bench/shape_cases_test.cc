// --shapes and --sweep: which shapes a step is measured with.
#include "thalweg/tools/bench/shape_cases.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "thalweg/tools/units.h"

namespace thalweg::tools {
namespace {

GeneratedInput Input(std::string name, absl::string_view shape) { return {std::move(name), *ParsePartialShape(shape)}; }

const std::vector<GeneratedInput>& Inputs() {
  static const auto* const inputs = new std::vector<GeneratedInput>{Input("x", "?x8"), Input("mask", "?"), Input("fixed", "3x4")};
  return *inputs;
}

// The cases as "text: name=shape ..." with the shape of each input that counts, apart by ';'; or the error's message.
std::string Cases(const std::vector<std::string>& sets, const std::vector<std::string>& sweeps, const std::vector<GeneratedInput>& inputs = Inputs()) {
  std::vector<ShapeSet> parsed_sets;
  for (const std::string& text : sets) {
    absl::StatusOr<std::vector<ShapeSet>> more = ParseShapeSets(text);
    if (!more.ok()) return std::string(more.status().message());
    parsed_sets.insert(parsed_sets.end(), more->begin(), more->end());
  }
  std::vector<Sweep> parsed_sweeps;
  for (const std::string& text : sweeps) {
    absl::StatusOr<Sweep> sweep = ParseSweep(text);
    if (!sweep.ok()) return std::string(sweep.status().message());
    parsed_sweeps.push_back(*std::move(sweep));
  }
  const absl::StatusOr<std::vector<ShapeCase>> cases = MakeShapeCases(inputs, {}, parsed_sets, parsed_sweeps);
  if (!cases.ok()) return std::string(cases.status().message());
  std::vector<std::string> lines;
  for (const ShapeCase& c : *cases) {
    std::string line = absl::StrCat(c.text, c.batch > 0 ? absl::StrCat(" (", c.batch, ")") : "", ":");
    for (const GeneratedInput& input : inputs) {
      const PartialShape* shape = nullptr;
      for (const auto& [name, fixed] : c.shapes) {
        if (name == input.name) shape = &fixed;
      }
      if (shape != nullptr) absl::StrAppend(&line, " ", input.name, shape->ToString());
    }
    lines.push_back(line);
  }
  return absl::StrJoin(lines, "; ");
}

TEST(ShapeCases, WithoutFlagsThereIsOne) { EXPECT_EQ(Cases({}, {}), ":"); }

TEST(ShapeCases, Sets) {
  EXPECT_EQ(Cases({"x=1x8,mask=1;x=4x8"}, {}), "x=1x8,mask=1: x[1,8] mask[1]; x=4x8: x[4,8]");
  EXPECT_EQ(Cases({"x=1x8", "x=2x8"}, {}), "x=1x8: x[1,8]; x=2x8: x[2,8]");
  EXPECT_EQ(Cases({"y=1"}, {}), "--shapes: 'y' is no input of this step with generated values, whose shape could be chosen; there is x, mask, fixed");
  EXPECT_EQ(Cases({"x=1x8;x=1x9"}, {}), "--shapes: the graph declares x as [?,8], which cannot be [1,9]");
  EXPECT_EQ(Cases({"x=?x8"}, {}), "x=?x8: x[?,8]");
  EXPECT_EQ(Cases({"x"}, {}), "'x' is not NAME=SHAPE, as in image=8x224x224x3");
  EXPECT_EQ(Cases({"x=1x8;"}, {}), "'' is not NAME=SHAPE, as in image=8x224x224x3");
}

TEST(ShapeCases, TheBatchIsEveryOpenLeadingDimension) {
  EXPECT_EQ(Cases({}, {"batch=1,16"}), "batch=1 (1): x[1,8] mask[1]; batch=16 (16): x[16,8] mask[16]");
  EXPECT_EQ(Cases({"x=2x8"}, {"batch=5"}), "x=2x8 batch=5 (5): x[5,8] mask[5]");
}

TEST(ShapeCases, OneDimension) {
  EXPECT_EQ(Cases({}, {"x.0=2:6:2"}), "x.0=2: x[2,8]; x.0=4: x[4,8]; x.0=6: x[6,8]");
  EXPECT_EQ(Cases({}, {"batch=1,2", "x.1=8"}), "batch=1 x.1=8 (1): x[1,8] mask[1]; batch=2 x.1=8 (2): x[2,8] mask[2]");
}

TEST(ShapeCases, WhatCannotBeSwept) {
  EXPECT_EQ(Cases({}, {"x.1=9"}), "--sweep x.1: the graph declares x as [?,8], so that its dimension 1 cannot be 9");
  EXPECT_EQ(Cases({}, {"x.2=9"}), "--sweep x.2: input x has shape [?,8], of which dimension 2 is not known to exist; give --shape x=8x16 too");
  EXPECT_EQ(Cases({}, {"y.0=9"}), "--sweep y.0: 'y' is no input of this step with generated values, whose shape could be chosen; "
                                  "there is x, mask, fixed");
  EXPECT_EQ(Cases({}, {"batch=9"}, {Input("fixed", "3x4"), Input("scalar", "")}),
            "--sweep batch: no input with generated values has an open leading dimension; there is fixed [3,4], scalar []");
  EXPECT_EQ(Cases({}, {"batch=9"}, {}), "--sweep batch: no input with generated values has an open leading dimension; "
                                           "there are none (what -i gives a value keeps its shape)");
  EXPECT_EQ(Cases({}, {"batch=1:60", "x.0=1:60"}), "--sweep and --shapes make more than 1000 combinations");
}

TEST(ShapeCases, MalformedSweeps) {
  for (const char* text : {"", "batch", "x=3", "x.=3", ".1=3", "x.-1=3", "batch=", "batch=1,-2", "batch=a", "x.y=3"}) {
    EXPECT_EQ(ParseSweep(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace thalweg::tools
