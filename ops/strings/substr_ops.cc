// StringLength and Substr, in bytes or in characters.
#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "thalweg/graph/shape_context.h"
#include "thalweg/ops/common/elementwise.h"
#include "thalweg/ops/common/index_args.h"
#include "thalweg/ops/strings/map_strings.h"
#include "thalweg/ops/strings/string_ops.h"
#include "thalweg/ops/strings/utf8.h"

namespace thalweg::strings {
namespace {

bool CountsCharacters(const KernelInit& init) { return init.node().node_attrs().GetOr<std::string>("unit", "BYTE") == "UTF8_CHAR"; }

class StringLengthKernel final : public Kernel {
 public:
  explicit StringLengthKernel(const KernelInit& init) : characters_(CountsCharacters(init)) {}

  absl::Status Compute(KernelContext& ctx) override {
    return MapStrings<int32_t>(ctx, [this](const std::string& text, int32_t* length) {
      *length = static_cast<int32_t>(characters_ ? CountCharacters(text) : static_cast<int64_t>(text.size()));
      return absl::OkStatus();
    });
  }

 private:
  const bool characters_;
};

// At most `count` units from `begin`, a place in `text`; a negative count takes all.
absl::string_view Take(absl::string_view text, size_t begin, int64_t count, bool characters) {
  if (!characters) {
    return text.substr(begin, count < 0 ? absl::string_view::npos : static_cast<size_t>(count));
  }
  size_t end = begin;
  while (count-- > 0 && end < text.size()) end = NextCharacter(text, end);
  return text.substr(begin, end - begin);
}

// The place of unit `pos`, counted from the end if negative; one past the last is fine. False if there is none.
bool FindPlace(absl::string_view text, int64_t pos, bool characters, size_t* place) {
  const int64_t size = static_cast<int64_t>(text.size());
  if (pos < -size || pos > size) return false;
  if (!characters) {
    *place = static_cast<size_t>(pos < 0 ? size + pos : pos);
    return true;
  }
  if (pos < 0) {
    *place = text.size();
    return StepBack(text, -pos, place);
  }
  *place = 0;
  for (; pos > 0; --pos) {
    if (*place == text.size()) return false;
    *place = NextCharacter(text, *place);
  }
  return true;
}

// Steps of an operand through a broadcast output, dimension by dimension.
class OperandIndex {
 public:
  OperandIndex(const BroadcastPlan& plan, int operand) : plan_(plan), operand_(operand) {}
  int64_t operator[](int64_t k) const {
    if (plan_.is_full(operand_)) return k;
    int64_t index = 0;
    for (int d = plan_.rank() - 1; d >= 0; --d) {
      index += k % plan_.dim(d) * plan_.stride(operand_, d);
      k /= plan_.dim(d);
    }
    return index;
  }

 private:
  const BroadcastPlan& plan_;
  const int operand_;
};

template <typename T>
class SubstrKernel final : public Kernel {
 public:
  explicit SubstrKernel(const KernelInit& init) : characters_(CountsCharacters(init)) {}

  absl::Status Compute(KernelContext& ctx) override {
    const Shape& pos = ctx.input(1).shape();
    if (pos != ctx.input(2).shape()) {
      return absl::InvalidArgumentError(absl::StrCat("pos and len must have one shape, but have ", pos.ToString(), " and ",
                                                     ctx.input(2).shape().ToString()));
    }
    const Shape* shapes[] = {&ctx.input(0).shape(), &pos};
    THALWEG_ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make(shapes));
    if (*shapes[0] != pos && pos.rank() != 0 && plan.shape().rank() > 2) {
      return absl::UnimplementedError(absl::StrCat("strings of shape ", shapes[0]->ToString(), " and positions of shape ",
                                                   pos.ToString(), " are broadcast up to rank 2 only"));
    }
    THALWEG_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, plan.shape()));
    return TakeAll(ctx, plan, out->mutable_flat<std::string>());
  }

 private:
  absl::Status TakeAll(KernelContext& ctx, const BroadcastPlan& plan, absl::Span<std::string> out) const {
    const absl::Span<const std::string> texts = ctx.input(0).flat<std::string>();
    const absl::Span<const T> positions = ctx.input(1).flat<T>(), lengths = ctx.input(2).flat<T>();
    const OperandIndex text_index(plan, 0), pos_index(plan, 1);
    FirstError error;
    ctx.ParallelFor(static_cast<int64_t>(out.size()), kNanosPerString, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const std::string& text = texts[text_index[k]];
        const int64_t pos = pos_index[k];
        size_t place = 0;
        if (!FindPlace(text, positions[pos], characters_, &place)) {
          error.Update(absl::InvalidArgumentError(absl::StrCat("pos ", positions[pos], " is out of range for the string of ",
                                                               text.size(), " bytes at ", CoordinateString(plan.shape(), k))));
          return;
        }
        const absl::string_view taken = Take(text, place, lengths[pos], characters_);
        out[k].assign(taken.data(), taken.size());
      }
    });
    return error.status();
  }

  const bool characters_;
};

absl::Status SubstrShape(ShapeContext& c) {
  THALWEG_RETURN_IF_ERROR(ShapeContext::Merge(c.input(1), c.input(2)).status());
  return BroadcastShape(c);
}

}  // namespace

void RegisterSubstrOps(OpLibrary& lib) {
  lib.schemas.Add("StringLength(input: string) -> output: int32", "unit: {\"BYTE\", \"UTF8_CHAR\"} = \"BYTE\"")
      .Shape(UnchangedShape).Cost(StringCost);
  lib.kernels.Add("StringLength", "cpu", &MakeKernel<StringLengthKernel>);

  lib.schemas.Add("Substr(input: string, pos: T, len: T) -> output: string",
                  "T: {int32, int64}; unit: {\"BYTE\", \"UTF8_CHAR\"} = \"BYTE\"")
      .Shape(SubstrShape).Cost(StringCost);
  lib.kernels.Add("Substr", "cpu", &MakeKernel<SubstrKernel<int32_t>>).Type<int32_t>("T");
  lib.kernels.Add("Substr", "cpu", &MakeKernel<SubstrKernel<int64_t>>).Type<int64_t>("T");
}

}  // namespace thalweg::strings
