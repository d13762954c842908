// StringSplit and StringSplitV2: the parts of each string of a vector, as a sparse matrix with a row per string.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/int_args.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_ops.h"

namespace thalweg::strings {
namespace {

using Parts = std::vector<absl::string_view>;

// At each character of `delimiters`; without any, into single bytes. An empty text has no parts.
void SplitAtAny(absl::string_view text, absl::string_view delimiters, bool skip_empty, Parts* parts) {
  if (delimiters.empty()) {
    for (size_t i = 0; i < text.size(); ++i) parts->push_back(text.substr(i, 1));
    return;
  }
  for (size_t begin = 0; begin <= text.size() && !text.empty();) {
    const size_t end = std::min(text.find_first_of(delimiters, begin), text.size());
    if (end > begin || !skip_empty) parts->push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// At runs of white space, at most `most` times; the rest follows without the space before it.
void SplitAtSpace(absl::string_view text, int64_t most, Parts* parts) {
  text = absl::StripAsciiWhitespace(text);
  while (!text.empty() && most-- != 0) {
    const auto end = std::find_if(text.begin(), text.end(), [](char c) { return absl::ascii_isspace(c); });
    const size_t length = static_cast<size_t>(end - text.begin());
    parts->push_back(text.substr(0, length));
    text = absl::StripLeadingAsciiWhitespace(text.substr(length));
  }
  if (!text.empty()) parts->push_back(text);
}

// At each occurrence of `separator`, at most `most` times; empty parts count.
void SplitAtSeparator(absl::string_view text, absl::string_view separator, int64_t most, Parts* parts) {
  while (most-- != 0) {
    const size_t at = text.find(separator);
    if (at == absl::string_view::npos) break;
    parts->push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts->push_back(text);
}

// Collects parts row by row, then emits indices, values and shape.
class SparseRows {
 public:
  void AddRow(const Parts& parts) {
    for (size_t i = 0; i < parts.size(); ++i) {
      indices_.push_back(rows_);
      indices_.push_back(static_cast<int64_t>(i));
      values_.push_back(parts[i]);
    }
    columns_ = std::max(columns_, static_cast<int64_t>(parts.size()));
    ++rows_;
  }

  absl::Status Emit(KernelContext& ctx) const {
    const int64_t count = static_cast<int64_t>(values_.size());
    THALWEG_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, Shape::Of({count, 2})));
    std::copy(indices_.begin(), indices_.end(), indices->mutable_flat<int64_t>().begin());
    THALWEG_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, Shape::Of({count})));
    std::string* out = values->mutable_flat<std::string>().data();
    for (int64_t i = 0; i < count; ++i) out[i].assign(values_[i].data(), values_[i].size());
    THALWEG_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(2, Shape::Of({2})));
    shape->mutable_flat<int64_t>()[0] = rows_;
    shape->mutable_flat<int64_t>()[1] = columns_;
    return absl::OkStatus();
  }

 private:
  std::vector<int64_t> indices_;
  Parts values_;  // views of the input
  int64_t rows_ = 0;
  int64_t columns_ = 0;
};

// Splits every string of input 0 with split(text, text of input 1, &parts).
template <typename Split>
absl::Status SplitRows(KernelContext& ctx, absl::string_view separator_name, Split split) {
  if (ctx.input(0).rank() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("input must be a vector, but its shape is ", ctx.input(0).shape().ToString()));
  }
  THALWEG_RETURN_IF_ERROR(RequireScalar(ctx.input(1), separator_name));
  const absl::string_view separator = ctx.input(1).flat<std::string>()[0];
  SparseRows rows;
  Parts parts;
  for (const std::string& text : ctx.input(0).flat<std::string>()) {
    parts.clear();
    split(text, separator, &parts);
    rows.AddRow(parts);
  }
  return rows.Emit(ctx);
}

class StringSplitKernel final : public Kernel {
 public:
  explicit StringSplitKernel(const KernelInit& init) : skip_empty_(init.node().node_attrs().GetOr<bool>("skip_empty", true)) {}

  absl::Status Compute(KernelContext& ctx) override {
    return SplitRows(ctx, "delimiter", [this](absl::string_view text, absl::string_view delimiters, Parts* parts) {
      SplitAtAny(text, delimiters, skip_empty_, parts);
    });
  }

 private:
  const bool skip_empty_;
};

class StringSplitV2Kernel final : public Kernel {
 public:
  explicit StringSplitV2Kernel(const KernelInit& init)
      : most_(std::max<int64_t>(-1, init.node().node_attrs().GetOr<int64_t>("maxsplit", -1))) {}

  absl::Status Compute(KernelContext& ctx) override {
    return SplitRows(ctx, "sep", [this](absl::string_view text, absl::string_view separator, Parts* parts) {
      if (most_ == 0) parts->push_back(text);
      else if (separator.empty()) SplitAtSpace(text, most_, parts);
      else SplitAtSeparator(text, separator, most_, parts);
    });
  }

 private:
  const int64_t most_;  // -1: as often as possible
};

absl::Status SplitShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(c.RequireRank(0, 1));
  THALWEG_RETURN_IF_ERROR(c.RequireScalar(1));
  const int64_t parts = c.NewSymbol();
  c.set_output(0, PartialShape::OfDims({parts, 2}));
  c.set_output(1, PartialShape::OfDims({parts}));
  c.set_output(2, PartialShape::OfDims({2}));
  return absl::OkStatus();
}

}  // namespace

void RegisterSplitOps(OpLibrary& lib) {
  lib.schemas.Add("StringSplit(input: string, delimiter: string) -> (indices: int64, values: string, shape: int64)",
                  "skip_empty: bool = true")
      .Shape(SplitShape).Cost(StringCost);
  lib.kernels.Add("StringSplit", "cpu", &MakeKernel<StringSplitKernel>);
  lib.schemas.Add("StringSplitV2(input: string, sep: string) -> (indices: int64, values: string, shape: int64)", "maxsplit: int = -1")
      .Shape(SplitShape).Cost(StringCost);
  lib.kernels.Add("StringSplitV2", "cpu", &MakeKernel<StringSplitV2Kernel>);
}

}  // namespace thalweg::strings
